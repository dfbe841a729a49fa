// SPDX-License-Identifier: Apache-2.0

package bide_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/storage"
)

func TestHookSeesTheMessageAsItWasGiven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []string
		client := bide.NewClient(newFaulty(), bide.ClientConfig{Hooks: bide.Hooks{
			OnEnqueue: func(_ string, m *bide.Message, r bide.Result) {
				seen = append(seen, fmt.Sprintf("%q %t %v", m.ID, r.ID != "", r.Err == nil))
			},
		}})
		many := []bide.Message{{ID: "a"}, {}, {Priority: -1}}
		for _, m := range many {
			_, _ = client.Enqueue(t.Context(), "one", m)
		}
		one := seen
		seen = nil
		_, _ = client.EnqueueMany(t.Context(), "many", many)
		assert.Equal(t, one, []string{`"a" true true`, `"" true true`, `"" true false`})
		assert.Equal(t, seen, one)
	})
}

func TestHooksSeeLostLeasesAndStuckHandlers(t *testing.T) {
	bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) {
		put(t, client, "a")
		begun := time.Now()
		var mu sync.Mutex
		var seen []string
		note := func(what string) func(*bide.Delivery[[]byte]) {
			return func(d *bide.Delivery[[]byte]) {
				mu.Lock()
				defer mu.Unlock()
				seen = append(seen, fmt.Sprintf("%s %s after %s", d.ID, what, time.Since(begun)))
			}
		}
		freed := make(chan struct{})
		consumer := bide.NewConsumer(client, bide.ConsumerConfig{
			Lease:  12 * time.Second,
			Grace:  10 * time.Second,
			Logger: quiet(),
			Hooks:  bide.Hooks{OnLeaseLost: note("lost"), OnStuck: note("stuck")},
		})
		orders.Handle(consumer, func(ctx context.Context, _ *bide.Delivery[order]) error {
			<-freed // not its context
			assert.Equal(t, context.Cause(ctx), error(bide.ErrLeaseLost))
			return nil
		})
		stop := start(t, consumer)
		synctest.Wait()
		assert.NoError(t, orders.Cancel(t.Context(), client, "a", bide.Running))
		pass(time.Minute)
		mu.Lock()
		assert.Equal(t, seen, []string{"a lost after 4s", "a stuck after 14s"})
		mu.Unlock()
		close(freed)
		synctest.Wait() // a drain does not wait for who is stuck
		assert.NoError(t, stop())
	})
}

func TestEngineSaysWhichMessagesSpentTheirDeliveries(t *testing.T) {
	bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) { // R7
		most := 1
		_, err := client.Configure(t.Context(), "orders", storage.ConfigEdit{MaxDeliveries: &most})
		assert.NoError(t, err)
		put(t, client, "a")
		var done bide.Done
		consumer := bide.NewConsumer(client, bide.ConsumerConfig{
			Hooks: bide.Hooks{OnDone: func(_ *bide.Delivery[[]byte], d bide.Done) { done = d }},
		})
		orders.Handle(consumer, func(context.Context, *bide.Delivery[order]) error { return bide.Snooze(time.Second) })
		stop := start(t, consumer)
		pass(time.Second)
		assert.NoError(t, stop())
		assert.Equal(t, done.Verdict, storage.Release)
		r, err := client.Get(t.Context(), "orders", "a")
		assert.NoError(t, err)
		assert.Equal(t, r.State, storage.Dead)
		assert.Equal(t, r.Reason, storage.ReasonMaxDeliveries)
	})
}

// A hook may use the client: it settles by hand a message of the queue that it is told of.
func TestOnDoneMaySettleOthers(t *testing.T) {
	bubble(t, func(t *testing.T, engine *faulty, client *bide.Client) {
		put(t, client, "held")
		held, err := client.Claim(t.Context(), orders.Name(), bide.ClaimOptions{})
		assert.NoError(t, err)
		put(t, client, "a")
		settled := make(chan error, 1)
		consumer := bide.NewConsumer(client, bide.ConsumerConfig{Hooks: bide.Hooks{
			OnDone: func(*bide.Delivery[[]byte], bide.Done) {
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				settled <- held[0].Ack(ctx)
			},
		}})
		orders.Handle(consumer, func(context.Context, *bide.Delivery[order]) error { return nil })
		stop := start(t, consumer)
		assert.NoError(t, <-settled)
		assert.NoError(t, stop())
	})
}

// A hook holds up what it reports, and nothing else.
func TestOnDoneHoldsUpWhatItReportsOnly(t *testing.T) {
	bubble(t, func(t *testing.T, engine *faulty, client *bide.Client) {
		_, err := orders.EnqueueMany(t.Context(), client, make([]order, 20), nil)
		assert.NoError(t, err)
		var told atomic.Int64
		consumer := bide.NewConsumer(client, bide.ConsumerConfig{Concurrency: 20, Hooks: bide.Hooks{
			OnDone: func(*bide.Delivery[[]byte], bide.Done) {
				pass(time.Second)
				told.Add(1)
			},
		}})
		orders.Handle(consumer, func(context.Context, *bide.Delivery[order]) error { return nil })
		stop := start(t, consumer)
		pass(1100 * time.Millisecond)
		assert.Equal(t, told.Load(), int64(20))
		assert.NoError(t, stop())
	})
}
