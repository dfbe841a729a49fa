// SPDX-License-Identifier: Apache-2.0

package torture

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
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
// store hold does not grow, and nothing is left behind in the end.
func TestSoak(t *testing.T) {
	long := cmp.Or(duration(t, "BIDE_SOAK_FOR"), 10*time.Second)
	seed := seed(t)
	only := os.Getenv("BIDE_TORTURE_ON")
	for _, c := range []struct {
		name string
		soak func(t *testing.T, seed uint64, long time.Duration)
	}{{"one", soakRedis}, {"directory", soakDirectory}} {
		if only == "" || only == c.name {
			t.Run(c.name, func(t *testing.T) {
				t.Logf("BIDE_SEED=%d BIDE_SOAK_FOR=%s BIDE_TORTURE_ON=%s", seed, long, c.name)
				c.soak(t, seed, long)
			})
		}
	}
}

func soakRedis(t *testing.T, seed uint64, long time.Duration) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(seed, 5))
	p := &one{fsync: "everysec", server: redistest.Start(t, redistest.Proxied(), redistest.AppendOnly("everysec"))}
	store := open(t, p.url())
	soaked(t, store, rnd)
	l := live(t.Context(), store, seed)
	r := newRing(t, rnd, p)
	var samples []sample
	sampled := time.Now()
	for end := time.Now().Add(long); time.Now().Before(end); {
		r.wait(min(r.upTo(1000, 4000), sampleEvery(long)))
		if time.Since(sampled) >= sampleEvery(long) {
			samples = append(samples, take(t, serverMemory(t, p.server)))
			sampled = time.Now()
		}
		all := p.faults(r)
		r.happen(all[rnd.IntN(len(all))])
	}
	t.Logf("%v", r.done)
	l.end(t, store)
	flat(t, samples)
	nothingLeft(t, p.server, store)
}

// soaked makes the queue one of those kinds that need most, and bounds what is kept for ever.
func soaked(t *testing.T, store storage.Engine, rnd *rand.Rand) {
	t.Helper()
	feature := features[1+rnd.IntN(len(features)-1)]
	t.Logf("a queue of the kind %q", feature.name)
	for _, edit := range []storage.ConfigEdit{feature.edit, {DeadCount: new(100)}} {
		_, err := store.Configure(t.Context(), queue, edit)
		assert.NoError(t, err)
	}
}

// life is three producers, who want the same lock, and a consumer, on one store.
type life struct {
	stopProducers, stop  context.CancelFunc
	producers, consumers sync.WaitGroup
}

func live(ctx context.Context, store storage.Engine, seed uint64) *life {
	l := &life{}
	ctx, l.stop = context.WithCancel(ctx)
	produced, stop := context.WithCancel(ctx)
	l.stopProducers = stop
	for i := range uint64(3) {
		l.producers.Go(func() { produce(produced, store, rand.New(rand.NewPCG(seed, 6+i)), 2) })
		l.producers.Go(func() { locks(produced, store, fmt.Sprint("owner", i)) })
	}
	l.consumers.Go(func() { _ = consume(ctx, store, "soaked", rand.New(rand.NewPCG(seed, 9)), true) })
	return l
}

// end lets what was produced be handled, by a consumer that goes on since life began.
func (l *life) end(t *testing.T, store storage.Engine) {
	t.Helper()
	l.stopProducers()
	l.producers.Wait()
	redistest.Until(t, "all is handled", func() bool {
		st, err := store.Stats(t.Context(), time.Time{}, queue)
		return err == nil && st.Delayed+st.Ready+st.Leased == 0
	})
	l.stop()
	l.consumers.Wait()
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
