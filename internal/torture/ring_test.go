// SPDX-License-Identifier: Apache-2.0

package torture

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/internal/history"
	"github.com/bidemq/bide/internal/redistest"
	"github.com/bidemq/bide/storage"
)

// place is where messages are kept while they are tortured.
type place interface {
	name() string
	url() string            // that the processes open
	crowd() int             // processes at a time
	faults(r *ring) []fault // beside those of processes
	mend(r *ring)           // ends what faults have left, so that everything runs again
}

// fault is something that happens. It is over when it returns, though not what follows from it.
type fault struct {
	name string
	do   func()
}

// ring is where it happens: the store, the processes, and what is done to them.
type ring struct {
	*testing.T
	rnd    *rand.Rand
	place  place
	dir    string // of the histories
	pace   int    // 1 is full speed
	count  int    // processes started so far
	living []*living
	done   map[string]int // faults
	terms  history.Terms
}

// living is a process that runs.
type living struct {
	*exec.Cmd
	history string // file
	read    int64  // of it, by goesOn
}

func newRing(t *testing.T, rnd *rand.Rand, p place) *ring {
	r := &ring{
		T: t, rnd: rnd, place: p, dir: filepath.Join(t.ArtifactDir(), p.name()), pace: 1, done: map[string]int{},
		terms: history.Terms{Patience: time.Second, Repeats: true},
	}
	assert.NoError(t, os.MkdirAll(r.dir, 0o755))
	t.Cleanup(func() {
		for _, p := range r.living {
			r.kill(p)
		}
	})
	return r
}

func (r *ring) start() *living { return r.startAt(r.place.url()) }

// startAt starts a process that knows the store by an address of its own.
func (r *ring) startAt(url string) *living {
	r.count++
	name := "process" + strconv.Itoa(r.count)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envName+"="+name, envStore+"="+url, envPace+"="+strconv.Itoa(r.pace),
		envSeed+"="+strconv.FormatUint(r.rnd.Uint64(), 10), "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = os.Stderr
	file := create(r.T, r.dir, name)
	cmd.Stdout = struct{ io.Writer }{file} // through a pipe: what the process has said outlives it, and no limit of its own is in the way
	assert.NoError(r, cmd.Start())
	p := &living{Cmd: cmd, history: file.Name()}
	r.living = append(r.living, p)
	return p
}

// kill ends a process at once.
func (r *ring) kill(p *living) {
	_ = p.Process.Kill() // it may have ended
	_ = p.Wait()         // says that it was killed
	for i := range r.living {
		if r.living[i] == p {
			r.living = append(r.living[:i], r.living[i+1:]...)
			return
		}
	}
}

// run makes faults happen for a while.
func (r *ring) run(long time.Duration) {
	end := time.Now().Add(long)
	for range r.place.crowd() {
		r.start()
	}
	r.wait(300 * time.Millisecond)
	for time.Now().Before(end) {
		all := append(r.ofProcesses(), r.place.faults(r)...)
		r.happen(all[r.rnd.IntN(len(all))])
		r.wait(r.upTo(50, 450))
	}
	r.place.mend(r)
}

func (r *ring) happen(f fault) {
	r.done[f.name]++
	f.do()
}

// upTo is a length of time between two numbers of milliseconds.
func (r *ring) upTo(least, most int) time.Duration {
	return time.Duration(least+r.rnd.IntN(most-least)) * time.Millisecond
}

func (r *ring) wait(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	<-t.C
}

// ofProcesses are the faults that happen to processes.
func (r *ring) ofProcesses() []fault {
	victim := r.living[r.rnd.IntN(len(r.living))]
	return []fault{
		{"process killed", func() {
			r.kill(victim)
			r.start()
		}},
		{"process stopped for longer than its leases", func() {
			assert.NoError(r, victim.Process.Signal(syscall.SIGSTOP))
			r.wait(lease + 200*time.Millisecond)
			assert.NoError(r, victim.Process.Signal(syscall.SIGCONT))
		}},
	}
}

// mayLose says that what was answered from a while ago until now, or until the returned function is
// called, may be lost.
func (r *ring) mayLose(ago time.Duration) (until func()) {
	r.terms.Rewinds = append(r.terms.Rewinds, history.Span{From: time.Now().Add(-ago), To: time.Now()})
	last := len(r.terms.Rewinds) - 1
	return func() { r.terms.Rewinds[last].To = time.Now() }
}

// goesOn waits until every process has enqueued and claimed again, and says how long that took.
func (r *ring) goesOn() time.Duration {
	r.Helper()
	began := time.Now()
	for _, p := range r.living {
		file, err := os.Stat(p.history)
		assert.NoError(r, err)
		p.read = file.Size()
	}
	for _, p := range r.living {
		r.does(p, "enqueue", "claim")
	}
	return time.Since(began)
}

// does waits until calls of a process have succeeded, each of another name.
func (r *ring) does(p *living, ops ...string) {
	r.Helper()
	redistest.Until(r, p.history+" goes on", func() bool {
		for _, line := range r.news(p) {
			ops = slices.DeleteFunc(ops, func(op string) bool {
				return bytes.Contains(line, []byte(`"fate":"ok"`)) && bytes.Contains(line, []byte(`"op":"`+op+`"`))
			})
		}
		return len(ops) == 0
	})
}

// news are the lines that a process has written since they were asked for.
func (r *ring) news(p *living) [][]byte {
	r.Helper()
	file, err := os.Open(p.history)
	assert.NoError(r, err)
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.NewSectionReader(file, p.read, 1<<40))
	assert.NoError(r, err)
	whole := bytes.LastIndexByte(text, '\n') + 1
	p.read += int64(whole)
	return bytes.Split(text[:whole], []byte("\n"))
}

// stop tells all processes to end, and waits for them.
func (r *ring) stop() {
	for _, p := range r.living {
		assert.NoError(r, p.Process.Signal(syscall.SIGTERM))
	}
	for _, p := range r.living {
		assert.NoError(r, p.Wait())
	}
	r.living = nil
}

// judge handles what is left, and checks the history of it all.
func (r *ring) judge(store storage.Engine) history.Report {
	r.Helper()
	drain(r.T, store, r.dir)
	report := check(r.T, store, r.dir, r.terms)
	r.Logf("%s: %v", r.place.name(), r.done)
	if len(report.Violations) > 0 {
		r.Log("the histories are in " + r.dir)
		r.Fatal(fmt.Sprint(report))
	}
	r.Log(report)
	return report
}
