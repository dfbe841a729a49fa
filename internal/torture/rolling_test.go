// SPDX-License-Identifier: Apache-2.0

package torture

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/internal/history"
	"github.com/bidemq/bide/internal/redistest"
	"github.com/bidemq/bide/storage"
)

// envCalm makes a process one that consumes and nothing else, and ends in order.
const envCalm = "BIDE_TORTURE_CALM"

// consumeCalmly acknowledges everything. That it ends in order means that no handler is interrupted.
func consumeCalmly(ctx context.Context, engine storage.Engine, name string, rnd *rand.Rand) error {
	client := bide.NewClient(engine, bide.ClientConfig{Logger: slog.New(slog.DiscardHandler)})
	consumer := bide.NewConsumer(client, bide.ConsumerConfig{Concurrency: 8, Lease: 10 * time.Second, Name: name, DrainTimeout: 8 * time.Second})
	var mu sync.Mutex
	var interrupted atomic.Int64
	consumer.Handle(queue, func(ctx context.Context, _ *bide.Delivery[[]byte]) error {
		mu.Lock()
		long := time.Duration(5+rnd.IntN(30)) * time.Millisecond
		mu.Unlock()
		if pause(ctx, long); ctx.Err() != nil {
			interrupted.Add(1)
		}
		return nil
	})
	err := consumer.Run(ctx)
	if n := interrupted.Load(); n > 0 {
		err = errors.Join(err, fmt.Errorf("%d handlers were interrupted", n))
	}
	return err
}

// A deployment: ten consumers are restarted one after another under load. Nothing is lost, no attempt
// is spent, and no message is handled twice.
func TestRollingRestarts(t *testing.T) {
	rounds := 1
	if s := os.Getenv("BIDE_ROUNDS"); s != "" {
		n, err := strconv.Atoi(s)
		assert.NoError(t, err)
		rounds = n
	}
	rnd := rand.New(rand.NewPCG(seed(t), 3))
	server := redistest.Start(t, redistest.AppendOnly("everysec"))
	r := newRing(t, rnd, &one{server: server, fsync: "everysec"})
	t.Setenv(envCalm, "1")
	for range 10 {
		r.does(r.start(), "claim")
	}
	store := open(t, server.URL())
	produced := produceAll(r, store)
	for range rounds {
		for range 10 {
			oldest := r.living[0]
			assert.NoError(t, oldest.Process.Signal(syscall.SIGTERM))
			assert.NoError(t, oldest.Wait(), "it ends in order")
			r.living = r.living[1:]
			r.does(r.start(), "claim")
		}
	}
	sent := produced()
	redistest.Until(t, "all is handled", func() bool {
		st, err := store.Stats(t.Context(), time.Time{}, queue)
		return err == nil && st.Delayed+st.Ready+st.Leased == 0
	})
	r.stop()
	report := check(t, store, r.dir, r.terms)
	assert.Equal(t, len(report.Violations), 0, report)
	st, err := store.Stats(t.Context(), time.Time{}, queue)
	assert.NoError(t, err)
	n := st.Total
	t.Logf("%d messages, %d restarts, %d handed out, %d given back unspent", sent, 10*rounds, n.Claimed, n.Released)
	assert.Equal(t, n.Acked, int64(sent), "each is acknowledged once")
	assert.Equal(t, n.Claimed, n.Acked+n.Released, "each is handled once")
	assert.Equal(t, []int64{n.Lapsed, n.Retried, n.Died, st.Dead}, []int64{0, 0, 0, 0}, "no attempt is spent")
}

// produceAll enqueues messages that have one attempt each, until the returned function is called, which
// says how many.
func produceAll(r *ring, store storage.Engine) (stop func() int) {
	r.Helper()
	file, err := os.Create(filepath.Join(r.dir, "producer"))
	assert.NoError(r, err)
	r.Cleanup(func() { _ = file.Close() })
	recorder := history.NewRecorder("producer", file)
	engine := recorder.Engine(store)
	ctx, cancel := context.WithCancel(r.Context())
	ended := make(chan int, 1)
	go func() {
		sent := 0
		for ctx.Err() == nil {
			recs := make([]storage.Record, 10)
			for i := range recs {
				sent++
				recs[i] = storage.Record{ID: strconv.Itoa(sent), Body: []byte("body"), MaxAttempts: 1, Delay: time.Duration(i) * time.Millisecond}
			}
			if _, err := engine.Enqueue(context.WithoutCancel(ctx), time.Time{}, queue, recs); err != nil {
				r.Error(err)
			}
			pause(ctx, 10*time.Millisecond)
		}
		ended <- sent
	}()
	return func() int {
		cancel()
		sent := <-ended
		assert.NoError(r, recorder.Err())
		return sent
	}
}
