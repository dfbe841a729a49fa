// SPDX-License-Identifier: Apache-2.0

// Package torture runs producers and consumers as processes of their own, lets faults happen to them
// and to their Redis, and checks the history of it all.
//
//	BIDE_TORTURE_FOR=10m BIDE_SEED=42 go test ./internal/torture -run TestTorture -v
//
// The seed chooses the features of the queue, the messages and the faults; instants differ from run to
// run. The short form is part of every test run.
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
	"github.com/bidemq/bide/redisstore"
	"github.com/bidemq/bide/storage"
)

const (
	queue     = "torture"
	processes = 4
	lease     = 2 * time.Second
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

// Nothing is lost, invented, early, held by two or out of order, whatever is killed, stopped, cut off,
// paused or full: Redis keeps what it has answered on its disk.
func TestTorture(t *testing.T) {
	seed := rand.Uint64()
	if s := os.Getenv("BIDE_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		assert.NoError(t, err)
		seed = n
	}
	long := 8 * time.Second
	if s := os.Getenv("BIDE_TORTURE_FOR"); s != "" {
		d, err := time.ParseDuration(s)
		assert.NoError(t, err)
		long = d
	}
	if testing.Short() {
		long = 3 * time.Second
	}
	rnd := rand.New(rand.NewPCG(seed, 0))
	feature := features[rnd.IntN(len(features))]
	t.Logf("BIDE_SEED=%d BIDE_TORTURE_FOR=%s, a queue of the kind %q", seed, long, feature.name)

	server := redistest.Start(t, redistest.AppendOnly("always"))
	store, err := redisstore.Open(t.Context(), server.URL())
	assert.NoError(t, err)
	defer func() { assert.NoError(t, store.Close()) }()
	if feature.edit != (storage.ConfigEdit{}) {
		_, err := store.Configure(t.Context(), queue, feature.edit)
		assert.NoError(t, err)
	}
	ring := newRing(t, rnd, server)
	ring.run(long)
	ring.stop()
	drain(t, store, ring.dir)

	report := check(t, store, ring.dir)
	t.Logf("faults: %v", ring.faults)
	if len(report.Violations) > 0 {
		t.Fatalf("BIDE_SEED=%d BIDE_TORTURE_FOR=%s: %s", seed, long, report)
	}
	t.Log(report)
	assert.True(t, report.Deliveries > 100, "hardly anything happened")
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

func check(t *testing.T, store storage.Engine, dir string) history.Report {
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
	return history.Check(calls, final, history.Terms{Patience: time.Second, Repeats: true})
}
