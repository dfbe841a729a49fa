// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/internal/redistest"
	"github.com/bidemq/bide/storage"
	"github.com/bidemq/bide/storage/storagetest"
)

// The number of shards is raised and lowered under load: nothing is lost, nothing is stored twice, the order of
// each key is kept, and in the end one count is left.
func TestShardsChangeUnderLoad(t *testing.T) {
	t.Parallel()
	for _, ordered := range []bool{true, false} {
		t.Run(map[bool]string{true: "Ordered", false: "WithoutOrder"}[ordered], func(t *testing.T) {
			t.Parallel()
			changeUnderLoad(t, ordered)
		})
	}
}

func changeUnderLoad(t *testing.T, ordered bool) {
	t.Helper()
	l := &shardLoad{t: t, ordered: ordered, queue: storagetest.NewQueueName(), seen: map[string]int{}, last: map[string]int{}}
	url := redistest.Shared(t).URL()
	for range 4 {
		s := openQuiet(t, url)
		s.settleIn = 20 * time.Millisecond
		l.stores = append(l.stores, s)
	}
	_, err := l.stores[0].Configure(t.Context(), l.queue, storage.ConfigEdit{Ordered: &ordered})
	assert.NoError(t, err)

	var producers, consumers sync.WaitGroup
	for p := range 3 {
		producers.Go(func() { l.produce(p) })
	}
	done, stop := context.WithCancel(t.Context())
	for c := range 4 {
		consumers.Go(func() { l.consume(done, c) })
	}
	for i, n := range []int{4, 8, 2, 1, 16, 1} {
		until := int64(i+1) * 300
		redistest.Until(t, "there is some load", func() bool { return l.stored.Load() > until || l.over.Load() == 3 })
		redistest.Until(t, "the queue takes another number of shards", func() bool {
			_, err := l.stores[i%4].Configure(t.Context(), l.queue, storage.ConfigEdit{Shards: &n})
			if err != nil {
				assert.ErrorIs(t, err, storage.ErrConflict) // too many at a time
			}
			return err == nil
		})
	}
	l.end.Store(true)
	producers.Wait()
	redistest.Until(t, "everything is done", func() bool { return l.acked.Load() >= l.stored.Load() })
	stop()
	consumers.Wait()
	assert.Equal(t, l.acked.Load(), l.stored.Load())
	for id, n := range l.seen {
		assert.Equal(t, n, 1, id)
	}
	redistest.Until(t, "one count is left", func() bool {
		found, _, err := l.stores[0].truth(t.Context(), l.queue)
		assert.NoError(t, err)
		return len(found.counts) == 1
	})
	st, err := l.stores[3].Stats(t.Context(), time.Time{}, l.queue)
	assert.NoError(t, err)
	assert.Equal(t, st.Delayed+st.Ready+st.Leased+st.Dead, 0)
	assert.Equal(t, st.Config.Shards, 0)
	r, err := l.stores[1].Repair(t.Context(), time.Time{}, l.queue, storage.Repair{Limit: storage.MaxBatch})
	assert.NoError(t, err)
	assert.Equal(t, len(r.Fixes), 0)
	t.Logf("%d messages", l.stored.Load())
}

// shardLoad is producers and consumers of one queue. Where it is not ordered half of the messages have no key,
// some are delayed and some are tried again.
type shardLoad struct {
	t       *testing.T
	ordered bool
	queue   string
	stores  []*Store
	stored  atomic.Int64
	acked   atomic.Int64
	over    atomic.Int64
	end     atomic.Bool

	mu   sync.Mutex
	seen map[string]int // acks by id
	last map[string]int // number acked last, by key
}

// produce enqueues numbered messages of its keys, each batch twice now and then.
func (l *shardLoad) produce(p int) {
	defer l.over.Add(1)
	numbers := map[string]int{}
	for round := 0; !l.end.Load() && !l.t.Failed(); round++ {
		var recs []storage.Record
		for range 1 + rand.IntN(10) {
			key := fmt.Sprint("p", p, "k", rand.IntN(12))
			numbers[key]++
			r := storage.Record{ID: fmt.Sprint(key, "n", numbers[key]), Key: key, DedupFor: time.Second}
			if !l.ordered {
				r.Delay = time.Duration(rand.IntN(20)) * time.Millisecond
				r.Key = []string{key, ""}[numbers[key]%2]
			}
			recs = append(recs, r)
		}
		for again := range 1 + rand.IntN(2) {
			results, err := l.stores[(p+round)%4].Enqueue(l.t.Context(), time.Time{}, l.queue, recs)
			if err != nil {
				l.t.Errorf("enqueue: %v", err)
				return
			}
			for i, r := range results {
				want := storage.Stored
				if again > 0 {
					want = storage.Duplicate
				}
				if r.Err != nil || r.Outcome != want {
					l.t.Errorf("%s is %s (%v), want %s", recs[i].ID, r.Outcome, r.Err, want)
				}
				if r.Outcome == storage.Stored {
					l.stored.Add(1)
				}
			}
		}
		for l.stored.Load()-l.acked.Load() > 500 && !l.t.Failed() {
			_, _ = l.stores[0].Wait(l.t.Context(), []storage.Scope{{Queue: "nobody"}}, time.Millisecond)
		}
	}
}

// consume claims, and settles with its own store or another one.
func (l *shardLoad) consume(ctx context.Context, c int) {
	s := l.stores[c]
	for ctx.Err() == nil {
		claimed, err := s.Claim(ctx, time.Time{}, storage.Claim{Queue: l.queue, Limit: 20, Lease: time.Minute, Group: rand.IntN(2) == 0})
		if err != nil && ctx.Err() == nil {
			l.t.Errorf("claim: %v", err)
			return
		}
		if len(claimed.Records) == 0 {
			_, _ = s.Wait(ctx, []storage.Scope{{Queue: l.queue}}, claimed.Next)
			continue
		}
		var ss []storage.Settlement
		acks := int64(0)
		l.mu.Lock()
		for _, r := range claimed.Records {
			if !l.ordered && rand.IntN(10) == 0 {
				ss = append(ss, storage.Settlement{Receipt: r.Receipt(l.queue), Verdict: storage.Retry, Delay: time.Millisecond})
				continue
			}
			l.inOrder(&r)
			l.seen[r.ID]++
			acks++
			ss = append(ss, storage.Settlement{Receipt: r.Receipt(l.queue), Verdict: storage.Ack})
		}
		l.mu.Unlock()
		by := s
		if rand.IntN(5) == 0 {
			by = l.stores[(c+1)%4]
		}
		lost, err := by.Settle(l.t.Context(), time.Time{}, ss)
		if err != nil || len(lost) > 0 {
			l.t.Errorf("settle: %v %v", lost, err)
		}
		l.acked.Add(acks)
	}
}

// inOrder fails unless a record of an ordered queue is the next of its key.
func (l *shardLoad) inOrder(r *storage.Record) {
	if !l.ordered {
		return
	}
	n, err := strconv.Atoi(r.ID[len(r.Key)+1:])
	if err != nil || n != l.last[r.Key]+1 {
		l.t.Errorf("%s after %d", r.ID, l.last[r.Key])
	}
	l.last[r.Key] = n
}
