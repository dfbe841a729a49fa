// SPDX-License-Identifier: Apache-2.0

package bide_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/storage"
)

func TestDelayedMessageIsHandledWhenDue(t *testing.T) {
	bubble(t, func(t *testing.T, engine *faulty, client *bide.Client) {
		begun := time.Now()
		res, err := orders.Enqueue(t.Context(), client, order{"A-1", 100}, bide.In(48*time.Hour), bide.ID("A-1"),
			bide.Key("customer"), bide.Priority(3), bide.Header("trace", "1"), bide.MaxAttempts(7))
		assert.NoError(t, err)
		assert.Equal(t, res, bide.Result{ID: "A-1", Outcome: storage.Stored, Due: begun.Add(48 * time.Hour)})

		var got []bide.Delivery[order]
		consumer := bide.NewConsumer(client, bide.ConsumerConfig{Logger: quiet()})
		orders.Handle(consumer, func(ctx context.Context, d *bide.Delivery[order]) error {
			assert.Equal(t, time.Since(begun), 48*time.Hour)
			got = append(got, *d)
			return nil
		})
		stop := start(t, consumer)
		pass(49 * time.Hour)
		assert.NoError(t, stop())

		assert.Equal(t, len(got), 1)
		d := got[0]
		assert.Equal(t, d.Body, order{"A-1", 100})
		assert.Equal(t, []any{d.Queue, d.ID, d.Key, d.Priority, d.Attempt, d.Deliveries, d.MaxAttempts, d.Lag},
			[]any{"orders", "A-1", "customer", 3, 1, 1, 7, time.Duration(0)})
		assert.Equal(t, d.Headers, map[string]string{"trace": "1"})
		assert.Equal(t, d.Enqueued, begun)
		assert.Equal(t, d.Due, begun.Add(48*time.Hour))
		assert.True(t, d.Token() > 0 && d.Token() == d.Record().Lease.Token)
		assert.Equal(t, total(t, client), storage.Counters{Enqueued: 1, Claimed: 1, Acked: 1})
		assert.True(t, len(engine.calls(claim)) <= 3, "an idle consumer does not poll", engine.calls(claim))
	})
}

func TestMessageOfAnIdleQueueIsHandledAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) {
		consumer := bide.NewConsumer(client, bide.ConsumerConfig{})
		handled := make(chan time.Time, 1)
		orders.Handle(consumer, func(context.Context, *bide.Delivery[order]) error {
			handled <- time.Now()
			return nil
		})
		stop := start(t, consumer)
		for range 3 {
			pass(time.Hour)
			put(t, client, "a")
			assert.Equal(t, <-handled, time.Now())
		}
		assert.NoError(t, stop())
	})
}

func TestMiddlewareOrder(t *testing.T) {
	bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) {
		put(t, client, "a")
		var trace []string
		note := func(name string) bide.Middleware {
			return func(next bide.Handler) bide.Handler {
				return func(ctx context.Context, d *bide.Delivery[[]byte]) error {
					trace = append(trace, name)
					return next(ctx, d)
				}
			}
		}
		consumer := bide.NewConsumer(client, bide.ConsumerConfig{Middleware: []bide.Middleware{note("all"), note("all too")}})
		orders.Handle(consumer, func(context.Context, *bide.Delivery[order]) error {
			trace = append(trace, "handler")
			return nil
		}, note("queue"), note("queue too"))
		stop := start(t, consumer)
		synctest.Wait()
		assert.NoError(t, stop())
		assert.Equal(t, trace, []string{"all", "all too", "queue", "queue too", "handler"})
	})
}

func TestFailingEngineDoesNotEndTheConsumer(t *testing.T) {
	bubble(t, func(t *testing.T, engine *faulty, client *bide.Client) {
		consumer := bide.NewConsumer(client, bide.ConsumerConfig{})
		handled := make(chan struct{})
		orders.Handle(consumer, func(context.Context, *bide.Delivery[order]) error {
			handled <- struct{}{}
			return nil
		})
		stop := start(t, consumer)
		for _, call := range []string{claim, wait} {
			synctest.Wait()
			engine.fails(call, storage.ErrUnavailable)
			put(t, client, call)
			begun := len(engine.calls(call))
			pass(time.Hour)
			assert.True(t, len(engine.calls(call))-begun < 2000, "it backs off")
			engine.heals(call)
			<-handled
		}
		engine.loses(claim, 1) // costs an attempt and the lease
		put(t, client, "lost")
		lost := time.Now()
		<-handled
		assert.True(t, time.Since(lost) >= 30*time.Second && time.Since(lost) < 36*time.Second, time.Since(lost))
		assert.NoError(t, stop())
	})
}

func TestRunRefusesWhatCannotWork(t *testing.T) {
	bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) {
		handler := func(context.Context, *bide.Delivery[order]) error { return nil }
		none := bide.NewConsumer(client, bide.ConsumerConfig{})
		assert.ErrorIs(t, none.Run(t.Context()), bide.ErrInvalid)

		typo := bide.NewConsumer(client, bide.ConsumerConfig{Queues: map[string]int{"order": 2}})
		orders.Handle(typo, handler)
		assert.ErrorIs(t, typo.Run(t.Context()), bide.ErrInvalid)

		twice := bide.NewConsumer(client, bide.ConsumerConfig{})
		orders.Handle(twice, handler)
		assert.NoError(t, start(t, twice)())
		assert.ErrorIs(t, twice.Run(t.Context()), bide.ErrInvalid)
	})
}

func TestPausedQueueIsLeftAlone(t *testing.T) {
	bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) {
		assert.NoError(t, client.Pause(t.Context(), "orders"))
		put(t, client, "a")
		consumer := bide.NewConsumer(client, bide.ConsumerConfig{})
		handled := make(chan time.Time, 1)
		orders.Handle(consumer, func(context.Context, *bide.Delivery[order]) error {
			handled <- time.Now()
			return nil
		})
		stop := start(t, consumer)
		pass(time.Hour)
		assert.Equal(t, len(handled), 0)
		assert.NoError(t, client.Resume(t.Context(), "orders"))
		assert.Equal(t, <-handled, time.Now())
		assert.NoError(t, stop())
	})
}
