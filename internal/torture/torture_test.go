// SPDX-License-Identifier: Apache-2.0

// Package torture runs producers and consumers as processes of their own, lets faults happen to them,
// to where their messages are kept and to the network in between, and checks the history of it all.
//
//	BIDE_TORTURE_FOR=10m BIDE_SEED=42 go test ./internal/torture -run TestTorture -v
//
// The seed chooses the place, the features of the queue, the messages and the faults; instants differ
// from run to run. The short form is part of every test run. docs/torture.md tells more.
package torture

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/internal/history"
	"github.com/bidemq/bide/internal/redistest"
	"github.com/bidemq/bide/storage"
)

const (
	queue = "torture"
	lease = 2 * time.Second
)

func TestMain(m *testing.M) {
	if name := os.Getenv(envName); name != "" {
		if err := child(name); err != nil {
			fmt.Fprintln(os.Stderr, name, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// features are the kinds of queues that are tortured.
var features = []struct {
	name string
	edit storage.ConfigEdit
}{
	{"plain", storage.ConfigEdit{}},
	{"keys in turn", storage.ConfigEdit{KeyLimit: new(3), RetainCount: new(50)}},
	{"ordered keys", storage.ConfigEdit{Ordered: new(true)}},
	{"batches held back", storage.ConfigEdit{MinBatch: new(3), Linger: new(200 * time.Millisecond), TellDead: new(true)}},
	{"bounds that drop", storage.ConfigEdit{MaxLen: new(60), MaxPerKey: new(20), Overflow: new(storage.DropOldest), DeadCount: new(100)}},
	{"bounds that refuse", storage.ConfigEdit{MaxLen: new(60), MaxPerKey: new(20), KeyIdle: new(30 * time.Second)}},
}

// places start where messages are kept.
var places = []struct {
	name  string
	start func(t *testing.T, rnd *rand.Rand) place
}{
	{"one", startOne},
	{"clock", startClock},
	{"directory", startDirectory},
	{"sentinel", startSentinel},
	{"cluster", startCluster},
}

// round is the longest that faults happen in one place, before the history is checked.
const round = 30 * time.Second

// Nothing is lost, invented, early, held by two or out of order, whatever is killed, stopped, cut off,
// paused or full: the store keeps what it has answered, but for what a failover may lose.
func TestTorture(t *testing.T) {
	seed := seed(t)
	long := duration(t, "BIDE_TORTURE_FOR")
	only := os.Getenv("BIDE_TORTURE_ON")
	if long == 0 { // a little everywhere; sets of servers have a test of their own
		for i, p := range places[:3] {
			if only == "" || only == p.name {
				t.Run(p.name, func(t *testing.T) { torture(t, seed+uint64(i), p.name, 5*time.Second) })
			}
		}
		return
	}
	for end := time.Now().Add(long); time.Now().Before(end) && !t.Failed(); seed++ {
		name := only
		if name == "" {
			name = places[rand.New(rand.NewPCG(seed, 1)).IntN(len(places))].name
		}
		t.Run(name, func(t *testing.T) { torture(t, seed, name, min(time.Until(end)+time.Second, round)) })
	}
}

func torture(t *testing.T, seed uint64, name string, long time.Duration) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(seed, 0))
	feature := features[rnd.IntN(len(features))]
	t.Logf("BIDE_SEED=%d BIDE_TORTURE_ON=%s BIDE_TORTURE_FOR=%s, a queue of the kind %q", seed, name, long.Round(time.Second), feature.name)
	for _, p := range places {
		if p.name != name {
			continue
		}
		r := newRing(t, rnd, p.start(t, rnd))
		configure(t, r.place.url(), feature.edit)
		r.run(long)
		r.stop()
		report := r.judge(open(t, r.place.url()))
		assert.True(t, report.Deliveries > 20, "hardly anything happened")
		return
	}
	t.Fatalf("BIDE_TORTURE_ON=%s is none of %v", name, places)
}

func seed(t *testing.T) uint64 {
	t.Helper()
	s := os.Getenv("BIDE_SEED")
	if s == "" {
		return rand.Uint64()
	}
	n, err := strconv.ParseUint(s, 10, 64)
	assert.NoError(t, err)
	return n
}

func duration(t *testing.T, env string) time.Duration {
	t.Helper()
	s := os.Getenv(env)
	if s == "" {
		return 0
	}
	d, err := time.ParseDuration(s)
	assert.NoError(t, err)
	return d
}

func open(t *testing.T, url string) storage.Engine {
	t.Helper()
	store, err := openStore(t.Context(), url)
	assert.NoError(t, err)
	t.Cleanup(func() { _ = store.Close() })
	return store
}

// configure makes the queue what it is, and leaves the store to others.
func configure(t *testing.T, url string, edit storage.ConfigEdit) {
	t.Helper()
	if edit == (storage.ConfigEdit{}) {
		return
	}
	store, err := openStore(t.Context(), url)
	assert.NoError(t, err)
	_, err = store.Configure(t.Context(), queue, edit)
	assert.NoError(t, err)
	assert.NoError(t, store.Close())
}

// drain handles what is left, so that nothing may be there in the end that is due.
func drain(t *testing.T, store storage.Engine, dir string) {
	t.Helper()
	file := create(t, dir, "last")
	recorder := history.NewRecorder("last", file)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- consume(ctx, recorder.Engine(store), "last", rand.New(rand.NewPCG(1, 1)), false) }()
	redistest.Until(t, "all is handled", func() bool {
		st, err := store.Stats(ctx, time.Time{}, queue)
		return err == nil && st.Delayed+st.Ready+st.Leased == 0
	})
	stop()
	assert.NoError(t, <-ended)
	assert.NoError(t, recorder.Err())
}

func create(t *testing.T, dir, name string) *os.File {
	t.Helper()
	file, err := os.Create(filepath.Join(dir, name))
	assert.NoError(t, err)
	t.Cleanup(func() { _ = file.Close() })
	return file
}

func check(t *testing.T, store storage.Engine, dir string, terms history.Terms) history.Report {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	assert.NoError(t, err)
	var logs []io.Reader
	for _, name := range names {
		file, err := os.Open(name)
		assert.NoError(t, err)
		t.Cleanup(func() { _ = file.Close() })
		logs = append(logs, file)
	}
	calls, err := history.Read(logs...)
	assert.NoError(t, err)
	final, err := history.Look(t.Context(), store, queue)
	assert.NoError(t, err)
	return history.Check(calls, final, terms)
}
