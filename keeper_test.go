// SPDX-License-Identifier: Apache-2.0

package bide_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/storage"
)

func TestLeaseIsKeptWhileTheHandlerRuns(t *testing.T) {
	bubble(t, func(t *testing.T, engine *faulty, client *bide.Client) {
		_, err := orders.EnqueueMany(t.Context(), client, make([]order, 100), nil)
		assert.NoError(t, err)
		consumer := bide.NewConsumer(client, bide.ConsumerConfig{Concurrency: 100, Lease: 30 * time.Second})
		orders.Handle(consumer, func(ctx context.Context, d *bide.Delivery[order]) error {
			pass(5 * time.Minute)
			assert.NoError(t, ctx.Err())
			return nil
		})
		stop := start(t, consumer)
		pass(6 * time.Minute)
		assert.NoError(t, stop())
		assert.Equal(t, total(t, client), storage.Counters{Enqueued: 100, Claimed: 100, Acked: 100})
		assert.True(t, len(engine.calls(extend)) <= 30, "leases are kept together", engine.calls(extend))
	})
}

func TestMoreLeasesThanGoIntoOneCallAreKept(t *testing.T) {
	bubble(t, func(t *testing.T, engine *faulty, client *bide.Client) {
		const n = 2500
		_, err := orders.EnqueueMany(t.Context(), client, make([]order, n), nil)
		assert.NoError(t, err)
		consumer := bide.NewConsumer(client, bide.ConsumerConfig{Concurrency: n})
		orders.Handle(consumer, func(context.Context, *bide.Delivery[order]) error {
			pass(time.Minute)
			return nil
		})
		stop := start(t, consumer)
		pass(2 * time.Minute)
		assert.NoError(t, stop())
		assert.Equal(t, total(t, client), storage.Counters{Enqueued: n, Claimed: n, Acked: n})
	})
}

func TestLeaseSurvivesFailedExtensions(t *testing.T) {
	bubble(t, func(t *testing.T, engine *faulty, client *bide.Client) {
		put(t, client, "a")
		consumer := bide.NewConsumer(client, bide.ConsumerConfig{Lease: 30 * time.Second})
		orders.Handle(consumer, func(ctx context.Context, d *bide.Delivery[order]) error {
			pass(time.Minute)
			assert.NoError(t, ctx.Err())
			return nil
		})
		stop := start(t, consumer)
		pass(9 * time.Second)
		engine.fails(extend, storage.ErrUnavailable)
		pass(14 * time.Second) // a third of the lease and more
		engine.heals(extend)
		pass(time.Minute)
		assert.NoError(t, stop())
		assert.Equal(t, total(t, client), storage.Counters{Enqueued: 1, Claimed: 1, Acked: 1})
	})
}

func TestHandlerStopsBeforeALeaseEndsThatCannotBeExtended(t *testing.T) {
	for name, refuse := range map[string]func(context.Context) error{
		"the engine refuses": func(context.Context) error { return storage.ErrUnavailable },
		"the engine hangs":   func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, engine *faulty, client *bide.Client) {
				put(t, client, "a")
				engine.set(extend, refuse, nil)
				begun := time.Now()
				var ended []time.Duration
				var lost atomic.Int64
				consumer := bide.NewConsumer(client, bide.ConsumerConfig{
					Lease: 30 * time.Second,
					Hooks: bide.Hooks{OnLeaseLost: func(*bide.Delivery[[]byte]) { lost.Add(1) }},
				})
				orders.Handle(consumer, func(ctx context.Context, d *bide.Delivery[order]) error {
					if d.Attempt == 2 {
						return nil
					}
					<-ctx.Done()
					assert.Equal(t, context.Cause(ctx), error(bide.ErrLeaseLost))
					ended = append(ended, time.Since(begun))
					pass(time.Minute) // late
					return nil
				})
				stop := start(t, consumer)
				pass(2 * time.Minute)
				assert.NoError(t, stop())
				assert.Equal(t, len(ended), 1)
				assert.True(t, ended[0] >= 20*time.Second && ended[0] < 30*time.Second, ended)
				assert.Equal(t, lost.Load(), 1)
				assert.Equal(t, total(t, client), storage.Counters{Enqueued: 1, Claimed: 2, Acked: 1, Lapsed: 1})
			})
		})
	}
}

func TestCancelOfARunningMessageStopsItsHandler(t *testing.T) {
	bubble(t, func(t *testing.T, engine *faulty, client *bide.Client) {
		put(t, client, "a")
		var cause error
		var done bide.Done
		consumer := bide.NewConsumer(client, bide.ConsumerConfig{
			Lease: 30 * time.Second,
			Hooks: bide.Hooks{OnDone: func(_ *bide.Delivery[[]byte], d bide.Done) { done = d }},
		})
		orders.Handle(consumer, func(ctx context.Context, d *bide.Delivery[order]) error {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return ctx.Err()
		})
		stop := start(t, consumer)
		pass(time.Second)
		assert.ErrorIs(t, orders.Cancel(t.Context(), client, "a"), bide.ErrConflict)
		assert.NoError(t, orders.Cancel(t.Context(), client, "a", bide.Running))
		pass(15 * time.Second)
		assert.NoError(t, stop())
		assert.Equal(t, cause, error(bide.ErrLeaseLost))
		assert.ErrorIs(t, done.Settle, bide.ErrLeaseLost)
		assert.Equal(t, len(engine.calls(settle)), 0)
	})
}

func TestTimeoutEndsTheHandler(t *testing.T) {
	bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) {
		put(t, client, "a", bide.MaxAttempts(1))
		consumer := bide.NewConsumer(client, bide.ConsumerConfig{Timeout: time.Minute})
		orders.Handle(consumer, func(ctx context.Context, d *bide.Delivery[order]) error {
			<-ctx.Done()
			return context.Cause(ctx)
		})
		stop := start(t, consumer)
		pass(time.Minute + time.Second)
		r, err := client.Get(t.Context(), "orders", "a")
		assert.NoError(t, err)
		assert.Equal(t, r.State, storage.Dead)
		assert.Equal(t, r.Reason, "handler timed out")
		assert.NoError(t, stop())
	})
}

func TestStuckHandlerGetsAReplacement(t *testing.T) {
	bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) {
		put(t, client, "wedged")
		var stuck atomic.Int64
		freed := make(chan struct{})
		handled := make(chan string, 10)
		consumer := bide.NewConsumer(client, bide.ConsumerConfig{
			Concurrency: 1,
			Timeout:     time.Minute,
			Grace:       10 * time.Second,
			Hooks:       bide.Hooks{OnStuck: func(*bide.Delivery[[]byte]) { stuck.Add(1) }},
		})
		orders.Handle(consumer, func(ctx context.Context, d *bide.Delivery[order]) error {
			if d.ID == "wedged" && d.Attempt == 1 {
				<-freed // not its context
			}
			handled <- d.ID
			return nil
		})
		stop := start(t, consumer)
		pass(time.Second)
		put(t, client, "other")
		pass(time.Minute)
		assert.Equal(t, len(handled), 0)
		pass(20 * time.Second)
		assert.Equal(t, stuck.Load(), 1)
		assert.Equal(t, <-handled, "other")
		pass(time.Minute)
		assert.Equal(t, <-handled, "wedged") // its lease ended
		assert.Equal(t, len(handled), 0)
		close(freed)
		assert.Equal(t, <-handled, "wedged") // late, its ack is refused
		put(t, client, "again")
		assert.Equal(t, <-handled, "again")
		assert.NoError(t, stop())
		assert.Equal(t, total(t, client), storage.Counters{Enqueued: 3, Claimed: 4, Acked: 3, Lapsed: 1})
	})
}

func TestExpiryIsCheckedAgainBeforeTheHandler(t *testing.T) {
	bubble(t, func(t *testing.T, engine *faulty, client *bide.Client) { // R13
		put(t, client, "a", bide.ExpireIn(time.Second))
		consumer := bide.NewConsumer(client, bide.ConsumerConfig{
			Hooks: bide.Hooks{OnClaim: func(string, int, time.Duration, error) { pass(2 * time.Second) }}, // the process stands still
		})
		orders.Handle(consumer, func(context.Context, *bide.Delivery[order]) error {
			t.Error("an expired message was handled")
			return nil
		})
		stop := start(t, consumer)
		pass(10 * time.Second)
		assert.NoError(t, stop())
		assert.Equal(t, total(t, client), storage.Counters{Enqueued: 1, Claimed: 1, Expired: 1})
	})
}

func TestLeaseIsCheckedAgainBeforeTheHandler(t *testing.T) {
	bubble(t, func(t *testing.T, engine *faulty, client *bide.Client) {
		put(t, client, "a")
		slow := true
		consumer := bide.NewConsumer(client, bide.ConsumerConfig{
			Hooks: bide.Hooks{OnClaim: func(string, int, time.Duration, error) {
				if slow {
					slow = false
					pass(29 * time.Second)
				}
			}},
		})
		var deliveries int
		orders.Handle(consumer, func(_ context.Context, d *bide.Delivery[order]) error {
			deliveries = d.Deliveries
			return nil
		})
		stop := start(t, consumer)
		pass(time.Hour)
		assert.NoError(t, stop())
		assert.Equal(t, deliveries, 1, "no handler had seen it")
		assert.Equal(t, total(t, client), storage.Counters{Enqueued: 1, Claimed: 2, Released: 1, Acked: 1})
	})
}

func TestSettlementsAreRepeatedWhileTheLeaseLasts(t *testing.T) {
	bubble(t, func(t *testing.T, engine *faulty, client *bide.Client) {
		put(t, client, "a")
		engine.fails(settle, storage.ErrUnavailable)
		consumer := bide.NewConsumer(client, bide.ConsumerConfig{})
		orders.Handle(consumer, func(context.Context, *bide.Delivery[order]) error { return nil })
		stop := start(t, consumer)
		pass(20 * time.Second)
		engine.heals(settle)
		pass(10 * time.Second)
		assert.Equal(t, total(t, client), storage.Counters{Enqueued: 1, Claimed: 1, Acked: 1})
		assert.NoError(t, stop())
	})
}

// A handler that returns just as it is to be given up for stuck is not, and its place is given once.
func TestHandlerThatReturnsWhileItIsGivenUp(t *testing.T) {
	bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) {
		put(t, client, "one")
		put(t, client, "two")
		free := make(chan struct{})
		var stuck, running, most atomic.Int64
		consumer := bide.NewConsumer(client, bide.ConsumerConfig{
			Concurrency: 2, Logger: quiet(), Timeout: time.Second, Grace: time.Second,
			Hooks: bide.Hooks{OnStuck: func(*bide.Delivery[[]byte]) {
				if stuck.Add(1) == 1 {
					close(free)
				}
				pass(time.Millisecond) // both return now
			}},
		})
		orders.Handle(consumer, func(_ context.Context, d *bide.Delivery[order]) error {
			if d.ID == "one" || d.ID == "two" {
				<-free
				return nil
			}
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			pass(500 * time.Millisecond)
			return nil
		})
		stop := start(t, consumer)
		pass(time.Minute)
		_, err := orders.EnqueueMany(t.Context(), client, make([]order, 10), nil)
		assert.NoError(t, err)
		pass(time.Minute)
		assert.Equal(t, []int64{stuck.Load(), most.Load()}, []int64{1, 2})
		begun := time.Now()
		assert.NoError(t, stop())
		assert.Equal(t, time.Since(begun), 0)
	})
}

// The grace of a handler whose context has ended does not begin anew with the loss of its lease.
func TestGraceBeginsOnce(t *testing.T) {
	bubble(t, func(t *testing.T, engine *faulty, client *bide.Client) {
		put(t, client, "slow")
		engine.fails(extend, storage.ErrUnavailable)
		begun, stuck, free := time.Now(), make(chan time.Duration, 1), make(chan struct{})
		consumer := bide.NewConsumer(client, bide.ConsumerConfig{
			Logger: quiet(), Lease: 12 * time.Second, Timeout: 6500 * time.Millisecond, Grace: 8 * time.Second,
			Hooks: bide.Hooks{OnStuck: func(*bide.Delivery[[]byte]) { stuck <- time.Since(begun) }},
		})
		orders.Handle(consumer, func(_ context.Context, d *bide.Delivery[order]) error {
			if d.Deliveries == 1 {
				<-free
			}
			return nil
		})
		stop := start(t, consumer)
		assert.Equal(t, <-stuck, 15*time.Second) // seen to have ended after 7 s
		close(free)
		pass(time.Second) // the handler returns, or the drain would count it
		assert.NoError(t, stop())
	})
}
