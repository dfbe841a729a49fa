// SPDX-License-Identifier: Apache-2.0

package bide_test

import (
	"context"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/storage"
)

// backlog is what the handlers of stall have before them, for longer than a test looks at them.
const backlog = 8000

// stall runs handlers that take a tenth of a millisecond each, until they are told to take for ever.
func stall(t *testing.T, client *bide.Client) (stalled *atomic.Bool, stop func() error) {
	t.Helper()
	for range backlog / 1000 {
		_, err := orders.EnqueueMany(t.Context(), client, make([]order, 1000), nil)
		assert.NoError(t, err)
	}
	stalled = &atomic.Bool{}
	consumer := bide.NewConsumer(client, bide.ConsumerConfig{Concurrency: 4, Logger: quiet(), DrainTimeout: -1})
	orders.Handle(consumer, func(ctx context.Context, d *bide.Delivery[order]) error {
		if stalled.Load() {
			<-ctx.Done()
			return ctx.Err()
		}
		pass(100 * time.Microsecond)
		return nil
	})
	return stalled, start(t, consumer)
}

func stats(t *testing.T, client *bide.Client) storage.Stats {
	t.Helper()
	s, err := client.Stats(t.Context(), orders.Name())
	assert.NoError(t, err)
	return s
}

// Fast handlers have more than one message each, so that claims bring many.
func TestFastHandlersAreClaimedAheadFor(t *testing.T) {
	bubble(t, func(t *testing.T, engine *faulty, client *bide.Client) {
		engine.takes(claim, time.Millisecond)
		_, stop := stall(t, client)
		most := int64(0)
		for range 100 {
			pass(time.Millisecond)
			most = max(most, stats(t, client).Leased)
		}
		pass(time.Second)
		assert.NoError(t, stop())
		assert.Equal(t, total(t, client).Acked, int64(backlog))
		assert.True(t, most > 40, most) // what the handlers do in a millisecond
		claims := engine.calls(claim)
		assert.True(t, len(claims) < backlog/30, len(claims))
	})
}

// What was claimed ahead of handlers that then take long is not kept from others, and nothing is spent
// of it: a queue that allows one delivery buries nobody that no handler has seen.
func TestWhatIsClaimedAheadIsGivenBack(t *testing.T) {
	bubble(t, func(t *testing.T, engine *faulty, client *bide.Client) {
		engine.takes(claim, time.Millisecond)
		_, err := client.Configure(t.Context(), orders.Name(), storage.ConfigEdit{MaxDeliveries: new(1)})
		assert.NoError(t, err)
		stalled, stop := stall(t, client)
		pass(60 * time.Millisecond)
		stalled.Store(true)
		pass(20 * time.Millisecond)
		ahead := stats(t, client).Leased - 4
		assert.True(t, ahead > 10, ahead)
		pass(100 * time.Millisecond)
		assert.Equal(t, stats(t, client).Leased, int64(4))
		given := stats(t, client).Total.Released
		assert.True(t, given >= ahead, given, ahead)
		pass(time.Second)
		assert.Equal(t, stats(t, client).Total.Released, given, "claimed ahead again") // only what is in hand
		for r, err := range client.Messages(t.Context(), orders.Name(), storage.Filter{State: storage.Ready}) {
			assert.NoError(t, err)
			assert.Equal(t, []int{r.Attempts, r.Deliveries}, []int{0, 0}, r.ID)
		}
		assert.Equal(t, stats(t, client).Dead, int64(0))
		assert.NoError(t, stop())
	})
}

// Handlers that take longer than a claim get nothing ahead.
func TestSlowHandlersAreNotClaimedAheadFor(t *testing.T) {
	bubble(t, func(t *testing.T, engine *faulty, client *bide.Client) {
		_, err := orders.EnqueueMany(t.Context(), client, make([]order, 1000), nil)
		assert.NoError(t, err)
		consumer := bide.NewConsumer(client, bide.ConsumerConfig{Concurrency: 4})
		most := int64(0)
		orders.Handle(consumer, func(context.Context, *bide.Delivery[order]) error {
			pass(20 * time.Millisecond)
			return nil
		})
		stop := start(t, consumer)
		for range 100 {
			pass(7300 * time.Microsecond) // never when a handler ends
			most = max(most, stats(t, client).Leased)
		}
		assert.NoError(t, stop())
		assert.Equal(t, most, int64(4))
	})
}

// A drain gives back at once what was claimed ahead, no attempt is spent, and what runs is settled.
func TestDrainGivesBackWhatWasClaimedAhead(t *testing.T) {
	bubble(t, func(t *testing.T, engine *faulty, client *bide.Client) {
		engine.takes(claim, time.Millisecond)
		_, stop := stall(t, client)
		pass(60 * time.Millisecond)
		assert.NoError(t, stop())
		s := stats(t, client)
		assert.Equal(t, s.Leased, int64(0))
		assert.True(t, s.Total.Released > 0, s.Total.Released)
		assert.Equal(t, s.Total.Acked+s.Ready, int64(backlog))
		assert.Equal(t, s.Total.Retried+s.Total.Lapsed, int64(0))
	})
}

// A handler that ends its goroutine does not take along what was claimed ahead.
func TestHandlersThatEndTheirGoroutineLeaveTheRest(t *testing.T) {
	bubble(t, func(t *testing.T, engine *faulty, client *bide.Client) {
		engine.takes(claim, time.Millisecond)
		_, err := orders.EnqueueMany(t.Context(), client, make([]order, 1000), nil)
		assert.NoError(t, err)
		consumer := bide.NewConsumer(client, bide.ConsumerConfig{Concurrency: 2, Logger: quiet(), Backoff: func(int) time.Duration { return 0 }})
		orders.Handle(consumer, func(_ context.Context, d *bide.Delivery[order]) error {
			pass(50 * time.Microsecond)
			if d.Attempt == 1 {
				runtime.Goexit()
			}
			return nil
		})
		stop := start(t, consumer)
		pass(2 * time.Second)
		assert.NoError(t, stop())
		assert.Equal(t, total(t, client), storage.Counters{Enqueued: 1000, Claimed: 2000, Acked: 1000, Retried: 1000})
		assert.True(t, slices.Max(engine.calls(claim)) > 2, "nothing was claimed ahead")
	})
}

// A batch that was claimed ahead begins when a handler is free, not when that one's batch is settled.
func TestBatchClaimedAheadDoesNotWaitForASettlement(t *testing.T) {
	bubble(t, func(t *testing.T, engine *faulty, client *bide.Client) {
		_, err := orders.EnqueueMany(t.Context(), client, make([]order, 100), nil)
		assert.NoError(t, err)
		engine.takes(claim, 20*time.Millisecond)
		var n atomic.Int64
		var ended time.Time
		began := make(chan time.Duration, 1)
		consumer := bide.NewConsumer(client, bide.ConsumerConfig{Concurrency: 1})
		orders.HandleBatch(consumer, func(context.Context, string, []*bide.Delivery[order]) error {
			switch n.Add(1) {
			case 40:
				pass(60 * time.Millisecond) // others are claimed meanwhile
				engine.takes(settle, 5*time.Second)
				ended = time.Now()
			case 41:
				began <- time.Since(ended)
				engine.heals(settle)
			default:
				pass(time.Millisecond)
			}
			return nil
		}, bide.BatchConfig{Max: 1})
		stop := start(t, consumer)
		assert.Equal(t, <-began, 0)
		assert.NoError(t, stop())
	})
}
