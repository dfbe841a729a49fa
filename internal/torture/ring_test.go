// SPDX-License-Identifier: Apache-2.0

package torture

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/internal/redistest"
)

// ring is where it happens: the server, the processes, and what is done to them.
type ring struct {
	t      *testing.T
	rnd    *rand.Rand
	server *redistest.Server
	dir    string // of the histories
	count  int    // processes started so far
	living []*exec.Cmd
	faults map[string]int
}

func newRing(t *testing.T, rnd *rand.Rand, server *redistest.Server) *ring {
	r := &ring{t: t, rnd: rnd, server: server, dir: t.ArtifactDir(), faults: map[string]int{}}
	t.Cleanup(func() {
		for _, cmd := range r.living {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	return r
}

func (r *ring) start() {
	r.count++
	name := "process" + strconv.Itoa(r.count)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envName+"="+name, envStore+"="+r.server.URL(), envDir+"="+r.dir,
		envSeed+"="+strconv.FormatUint(r.rnd.Uint64(), 10), "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = os.Stderr
	assert.NoError(r.t, cmd.Start())
	r.living = append(r.living, cmd)
}

// run makes faults happen for a while.
func (r *ring) run(long time.Duration) {
	end := time.Now().Add(long)
	for range processes {
		r.start()
	}
	r.wait(300 * time.Millisecond)
	for time.Now().Before(end) {
		r.fault()
		r.wait(time.Duration(50+r.rnd.IntN(400)) * time.Millisecond)
	}
}

func (r *ring) wait(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	<-t.C
}

func (r *ring) fault() {
	i := r.rnd.IntN(len(r.living))
	victim := r.living[i].Process
	all := []struct {
		name string
		do   func()
	}{
		{"process killed", func() {
			_ = victim.Kill()
			_ = r.living[i].Wait()
			r.living = append(r.living[:i], r.living[i+1:]...)
			r.start()
		}},
		{"process stopped for longer than its leases", func() {
			assert.NoError(r.t, victim.Signal(syscall.SIGSTOP))
			r.wait(lease + 200*time.Millisecond)
			assert.NoError(r.t, victim.Signal(syscall.SIGCONT))
		}},
		{"server killed", func() {
			r.server.Kill()
			r.wait(time.Duration(r.rnd.IntN(300)) * time.Millisecond)
			r.server.Restart(r.t, redistest.AppendOnly("always"))
		}},
		{"scripts flushed", func() { r.server.Do(r.t, "SCRIPT", "FLUSH") }},
		{"connections cut", func() { r.server.Do(r.t, "CLIENT", "KILL", "TYPE", "normal") }},
		{"notices cut", func() { r.server.Do(r.t, "CLIENT", "KILL", "TYPE", "pubsub") }},
		{"clients paused", func() { r.server.Do(r.t, "CLIENT", "PAUSE", "300") }},
		{"server full", func() {
			r.server.Do(r.t, "CONFIG", "SET", "maxmemory", "1mb")
			r.wait(200 * time.Millisecond)
			r.server.Do(r.t, "CONFIG", "SET", "maxmemory", "0")
		}},
	}
	f := all[r.rnd.IntN(len(all))]
	r.faults[f.name]++
	f.do()
}

// stop tells all processes to end, and waits for them.
func (r *ring) stop() {
	for _, cmd := range r.living {
		assert.NoError(r.t, cmd.Process.Signal(syscall.SIGTERM))
	}
	for _, cmd := range r.living {
		assert.NoError(r.t, cmd.Wait())
	}
	r.living = nil
}
