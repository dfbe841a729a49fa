// SPDX-License-Identifier: Apache-2.0

package storagetest

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/storage"
)

const (
	crowdProducers = 8
	crowdConsumers = 8
	crowdMessages  = 250 // of each producer
	crowdLease     = 500 * time.Millisecond
)

// Crowd lets producers and consumers work on one queue at once, on the engine's own clock, with
// consumers that now and then let go of what they hold. Afterwards every message was acknowledged
// once, nothing was delivered early, and no message had two leases at one instant.
func Crowd(t *testing.T, open Open) {
	c := &crowd{engine: open(t), queue: NewQueueName(), due: map[string]time.Time{}, acked: map[string]int{}, seen: map[string][]delivery{}}
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	var producers, consumers sync.WaitGroup
	errs := make(chan error, crowdProducers+crowdConsumers)
	for p := range crowdProducers {
		producers.Go(func() { errs <- c.produce(ctx, p) })
	}
	done, finish := context.WithCancel(ctx)
	for range crowdConsumers {
		consumers.Go(func() { errs <- c.consume(ctx, done) })
	}
	producers.Wait()
	c.mu.Lock()
	c.finish = finish
	c.check()
	c.mu.Unlock()
	consumers.Wait()
	finish()
	close(errs)
	for err := range errs {
		assert.NoError(t, err)
	}
	c.judge(t)
}

// crowd is the ledger outside of the engine.
type crowd struct {
	engine storage.Engine
	queue  string

	mu     sync.Mutex
	due    map[string]time.Time // of what was answered as stored
	acked  map[string]int       // acknowledgements that were not lost
	seen   map[string][]delivery
	finish func() // ends the consumers when all is acknowledged; nil while producers run
}

type delivery struct {
	token   int64
	at      time.Time // engine's instant of the claim
	until   time.Time // end of the lease
	settled bool      // before the lease ended
}

func (c *crowd) produce(ctx context.Context, p int) error {
	for i := range crowdMessages {
		id := fmt.Sprintf("p%d-%d", p, i)
		rec := storage.Record{ID: id, Body: []byte(id), Delay: time.Duration(rand.IntN(200)) * time.Millisecond, Priority: rand.IntN(3)}
		results, err := c.engine.Enqueue(ctx, time.Time{}, c.queue, []storage.Record{rec})
		if err != nil {
			return err
		}
		c.mu.Lock()
		c.due[id] = results[0].Due
		c.mu.Unlock()
	}
	return nil
}

// consume claims until all is acknowledged. One delivery in ten is abandoned, one is retried, one
// released.
func (c *crowd) consume(ctx, done context.Context) error {
	for done.Err() == nil {
		claimed, err := c.engine.Claim(ctx, time.Time{}, storage.Claim{Queue: c.queue, Limit: 1 + rand.IntN(20), Lease: crowdLease})
		if err != nil {
			return err
		}
		if len(claimed.Records) == 0 {
			_, err := c.engine.Wait(done, []storage.Scope{{Queue: c.queue}}, min(claimed.Next, time.Second))
			if err != nil && done.Err() == nil {
				return err
			}
			continue
		}
		var ss []storage.Settlement
		for _, r := range claimed.Records {
			v := storage.Ack
			switch rand.IntN(10) {
			case 0:
				continue
			case 1:
				v = storage.Retry
			case 2:
				v = storage.Release
			}
			ss = append(ss, storage.Settlement{Receipt: r.Receipt(c.queue), Verdict: v})
		}
		lost, err := c.engine.Settle(ctx, time.Time{}, ss)
		if err != nil {
			return err
		}
		c.note(claimed, ss, lost)
	}
	return nil
}

func (c *crowd) note(claimed storage.Claimed, ss []storage.Settlement, lost []storage.Receipt) {
	c.mu.Lock()
	defer c.mu.Unlock()
	settled := map[int64]bool{}
	for _, s := range ss {
		if slices.Contains(lost, s.Receipt) {
			continue
		}
		settled[s.Receipt.Token] = true
		if s.Verdict == storage.Ack {
			c.acked[s.Receipt.ID]++
		}
	}
	for _, r := range claimed.Records {
		c.seen[r.ID] = append(c.seen[r.ID], delivery{r.Lease.Token, claimed.Now, r.Lease.Until, settled[r.Lease.Token]})
	}
	c.check()
}

// check ends the consumers when everything is acknowledged. The caller holds mu.
func (c *crowd) check() {
	if c.finish != nil && len(c.acked) == len(c.due) {
		c.finish()
	}
}

func (c *crowd) judge(t *testing.T) {
	assert.Equal(t, len(c.due), crowdProducers*crowdMessages)
	for id, due := range c.due {
		assert.Equal(t, c.acked[id], 1, "acknowledgements of", id)
		ds := c.seen[id]
		slices.SortFunc(ds, func(a, b delivery) int { return cmp.Compare(a.token, b.token) })
		for i, d := range ds {
			assert.True(t, !d.at.Before(due), id, "was claimed early, at", d.at, "due", due) // R2
			if i == 0 {
				continue
			}
			before := ds[i-1]
			assert.True(t, d.token > before.token, "tokens of", id)                                                // R5
			assert.True(t, before.settled || !d.at.Before(before.until), id, "was claimed while leased, at", d.at) // R4
		}
	}
	for id := range c.seen {
		assert.True(t, !c.due[id].IsZero(), id, "was delivered and never enqueued")
	}
	st, err := c.engine.Stats(t.Context(), time.Time{}, c.queue)
	assert.NoError(t, err)
	assert.Equal(t, []int64{st.Delayed, st.Ready, st.Leased, st.Dead}, []int64{0, 0, 0, 0})
	AddsUp(t, st)
	t.Logf("%d messages in %d deliveries, %d leases ended, %d wake-ups", len(c.due), st.Total.Claimed, st.Total.Lapsed, st.Total.Wakeups)
}
