// SPDX-License-Identifier: Apache-2.0

package torture

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/internal/redistest"
	"github.com/bidemq/bide/redisstore"
	"github.com/bidemq/bide/storage"
)

// A long run of everything at a moderate rate, with a fault every few seconds: what a client and a
// server hold does not grow, and nothing is left behind in the end.
func TestSoak(t *testing.T) {
	long := cmp.Or(duration(t, "BIDE_SOAK_FOR"), 15*time.Second)
	seed := seed(t)
	rnd := rand.New(rand.NewPCG(seed, 5))
	p := &one{fsync: "everysec", server: redistest.Start(t, redistest.Proxied(), redistest.AppendOnly("everysec"))}
	feature := features[1+rnd.IntN(len(features)-1)]
	t.Logf("BIDE_SEED=%d BIDE_SOAK_FOR=%s, a queue of the kind %q", seed, long, feature.name)
	configure(t, p.url(), feature.edit)
	limits := storage.ConfigEdit{DeadCount: new(100)}
	configure(t, p.url(), limits)

	store := open(t, p.url())
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var parts sync.WaitGroup
	produced, stopProducers := context.WithCancel(ctx)
	defer stopProducers()
	var producers sync.WaitGroup
	for i := range uint64(3) {
		r := rand.New(rand.NewPCG(seed, 6+i))
		producers.Go(func() { produce(produced, store, r, 2) })
		producers.Go(func() { locks(produced, store, fmt.Sprint("owner", i)) })
	}
	parts.Go(func() { _ = consume(ctx, store, "soaked", rand.New(rand.NewPCG(seed, 9)), true) })

	r := newRing(t, rnd, p)
	var samples []sample
	every := max(long/60, 250*time.Millisecond)
	next := time.Now()
	for end := time.Now().Add(long); time.Now().Before(end); {
		r.wait(min(every, time.Until(end)))
		samples = append(samples, take(t, p.server))
		if time.Now().After(next) {
			all := p.faults(r)
			r.happen(all[rnd.IntN(len(all))])
			next = time.Now().Add(r.upTo(1000, 4000))
		}
	}
	stopProducers()
	producers.Wait()
	t.Logf("%v", r.done)
	redistest.Until(t, "all is handled by a consumer that was never started anew", func() bool {
		st, err := store.Stats(ctx, time.Time{}, queue)
		return err == nil && st.Delayed+st.Ready+st.Leased == 0
	})
	stop()
	parts.Wait()
	flat(t, samples)
	nothingLeft(t, p.server, store)
}

// locks takes and gives back a lock that others want too.
func locks(ctx context.Context, engine storage.Engine, owner string) {
	for n := 0; ctx.Err() == nil; n++ {
		request := storage.LockRequest{Name: "lock", Owner: owner + strconv.Itoa(n), TTL: 300 * time.Millisecond, Wait: time.Second}
		if l, err := engine.Acquire(ctx, time.Time{}, request); err == nil && n%5 > 0 {
			_ = engine.Release(ctx, time.Time{}, l.Receipt()) // it may be lost, or end by itself
		}
		pause(ctx, 20*time.Millisecond)
	}
}

// sample is what is held at an instant.
type sample struct {
	heap        int64 // bytes of this process, after a collection
	goroutines  int64
	descriptors int64
	server      int64 // bytes of Redis
}

func take(t *testing.T, server *redistest.Server) sample {
	t.Helper()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	s := sample{heap: int64(m.HeapAlloc), goroutines: int64(runtime.NumGoroutine())}
	if open, err := os.ReadDir("/proc/self/fd"); err == nil {
		s.descriptors = int64(len(open))
	}
	for line := range strings.Lines(server.Do(t, "INFO", "memory")) {
		if n, ok := strings.CutPrefix(strings.TrimSpace(line), "used_memory:"); ok {
			bytes, err := strconv.ParseInt(n, 10, 64)
			assert.NoError(t, err)
			s.server = bytes
		}
	}
	return s
}

// flat compares the last third with the middle one: the first is what warms up. Growth by a quarter,
// and by what one batch and one connection are, is within what a moment makes of it.
func flat(t *testing.T, samples []sample) {
	t.Helper()
	n := len(samples)
	assert.True(t, n >= 9, "too few samples")
	middle := func(some []sample, of func(sample) int64) int64 {
		var values []int64
		for _, s := range some {
			values = append(values, of(s))
		}
		slices.Sort(values)
		return values[len(values)/2]
	}
	for _, c := range []struct {
		name  string
		of    func(sample) int64
		slack int64
	}{
		{"heap, bytes", func(s sample) int64 { return s.heap }, 4 << 20},
		{"goroutines", func(s sample) int64 { return s.goroutines }, 10},
		{"descriptors", func(s sample) int64 { return s.descriptors }, 5},
		{"memory of Redis, bytes", func(s sample) int64 { return s.server }, 4 << 20},
	} {
		before, after := middle(samples[n/3:2*n/3], c.of), middle(samples[2*n/3:], c.of)
		t.Logf("%s: %d, then %d", c.name, before, after)
		assert.True(t, after <= before+before/4+c.slack, c.name, "grew from", before, "to", after)
	}
}

// nothingLeft says that an idle queue holds no lease, place, window or lock. Processes that waited stay
// entered until they are overdue.
func nothingLeft(t *testing.T, server *redistest.Server, store storage.Engine) {
	t.Helper()
	keys := redisstore.QueueKeys("", queue)
	redistest.Until(t, "windows have ended", func() bool {
		_, err := store.Claim(t.Context(), time.Time{}, storage.Claim{Queue: queue, Limit: 1, Lease: time.Second})
		assert.NoError(t, err)
		for _, key := range keys {
			switch name := key[strings.LastIndex(key, ":")+1:]; name {
			case "meta", "records", "dead", "names", "done", "untold", "waiters": // of what is finished
			case "keys":
				if server.Do(t, "HLEN", key) != "0" {
					return false
				}
			default:
				if server.Do(t, "ZCARD", key) != "0" {
					return false
				}
			}
		}
		return true
	})
	waiters, err := strconv.Atoi(server.Do(t, "ZCARD", keys[8]))
	assert.NoError(t, err)
	assert.True(t, waiters <= 4, waiters, "processes are entered that have gone")
	redistest.Until(t, "only the last token is left of locks", func() bool { // who gave up waiting is remembered for 15 s
		l, err := store.Acquire(t.Context(), time.Time{}, storage.LockRequest{Name: "last", Owner: "last", TTL: time.Second, Wait: time.Second})
		assert.NoError(t, err)
		assert.NoError(t, store.Release(t.Context(), time.Time{}, l.Receipt()))
		return len(strings.Fields(server.Do(t, "KEYS", "bide:{default/locks}:*"))) <= 1
	})
	st, err := store.Stats(t.Context(), time.Time{}, queue)
	assert.NoError(t, err)
	records, err := strconv.ParseInt(server.Do(t, "HLEN", keys[1]), 10, 64)
	assert.NoError(t, err)
	assert.Equal(t, records, st.Dead+st.Done, "records beside those that are kept")
}
