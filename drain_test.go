// SPDX-License-Identifier: Apache-2.0

package bide_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/storage"
)

var errBoom = errors.New("boom")

func TestDrainLetsHandlersFinish(t *testing.T) {
	bubble(t, func(t *testing.T, engine *faulty, client *bide.Client) {
		_, err := orders.EnqueueMany(t.Context(), client, make([]order, 10), nil)
		assert.NoError(t, err)
		consumer := bide.NewConsumer(client, bide.ConsumerConfig{Concurrency: 4, DrainTimeout: 30 * time.Second})
		orders.Handle(consumer, func(ctx context.Context, d *bide.Delivery[order]) error {
			pass(20 * time.Second)
			return ctx.Err()
		})
		stop := start(t, consumer)
		pass(time.Second)
		begun := time.Now()
		assert.NoError(t, stop())
		assert.Equal(t, time.Since(begun), 19*time.Second)
		assert.Equal(t, total(t, client), storage.Counters{Enqueued: 10, Claimed: 4, Acked: 4})
	})
}

func TestDrainInterruptsHandlersThatTakeTooLong(t *testing.T) {
	bubble(t, func(t *testing.T, engine *faulty, client *bide.Client) {
		for _, id := range []string{"interrupted", "done", "fails", "dead"} {
			put(t, client, id)
		}
		consumer := bide.NewConsumer(client, bide.ConsumerConfig{DrainTimeout: 30 * time.Second})
		orders.Handle(consumer, func(ctx context.Context, d *bide.Delivery[order]) error {
			<-ctx.Done()
			assert.Equal(t, context.Cause(ctx), error(bide.ErrShutdown))
			switch d.ID {
			case "done":
				return nil
			case "fails":
				return bide.RetryIn(time.Hour, errBoom)
			case "dead":
				return bide.DeadLetter(errBoom)
			}
			return ctx.Err()
		})
		stop := start(t, consumer)
		pass(time.Second)
		begun := time.Now()
		assert.NoError(t, stop())
		assert.Equal(t, time.Since(begun), 30*time.Second)
		assert.Equal(t, total(t, client), storage.Counters{Enqueued: 4, Claimed: 4, Acked: 1, Released: 1, Retried: 1, Died: 1})
		r, err := client.Get(t.Context(), "orders", "interrupted")
		assert.NoError(t, err)
		assert.Equal(t, r.State, storage.Ready)
		assert.Equal(t, r.Attempts, 0)
	})
}

func TestDrainGivesBackWhatAClaimUnderWayBrings(t *testing.T) {
	bubble(t, func(t *testing.T, engine *faulty, client *bide.Client) {
		_, err := orders.EnqueueMany(t.Context(), client, make([]order, 5), nil)
		assert.NoError(t, err)
		engine.takes(claim, time.Second)
		consumer := bide.NewConsumer(client, bide.ConsumerConfig{})
		orders.Handle(consumer, func(context.Context, *bide.Delivery[order]) error {
			t.Error("a handler was begun while draining")
			return nil
		})
		stop := start(t, consumer)
		pass(500 * time.Millisecond)
		assert.NoError(t, stop())
		assert.Equal(t, total(t, client), storage.Counters{Enqueued: 5, Claimed: 5, Released: 5})
		assert.Equal(t, len(engine.calls(claim)), 1)
	})
}

func TestDrainLeavesHandlersThatIgnoreIt(t *testing.T) {
	bubble(t, func(t *testing.T, engine *faulty, client *bide.Client) {
		put(t, client, "a")
		freed := make(chan struct{})
		consumer := bide.NewConsumer(client, bide.ConsumerConfig{DrainTimeout: -1, Grace: time.Second})
		orders.Handle(consumer, func(context.Context, *bide.Delivery[order]) error {
			<-freed
			return nil
		})
		stop := start(t, consumer)
		pass(time.Second)
		begun := time.Now()
		err := stop()
		assert.True(t, err != nil)
		assert.Equal(t, time.Since(begun), time.Second)
		close(freed)
		synctest.Wait()
	})
}

func TestDrainTellsOfAClaimThatIsNotAnswered(t *testing.T) {
	bubble(t, func(t *testing.T, engine *faulty, client *bide.Client) {
		put(t, client, "a")
		engine.set(claim, nil, func() error { pass(5 * time.Minute); return nil }) // it has happened
		consumer := bide.NewConsumer(client, bide.ConsumerConfig{Lease: 20 * time.Minute, Logger: quiet()})
		orders.Handle(consumer, func(context.Context, *bide.Delivery[order]) error {
			t.Error("a handler was begun after the drain")
			return nil
		})
		stop := start(t, consumer)
		pass(time.Second)
		err := stop()
		assert.True(t, err != nil && strings.Contains(err.Error(), "1 claims not answered"), err)
		s, err := client.Stats(t.Context(), "orders")
		assert.NoError(t, err)
		assert.Equal(t, s.Leased, 1)
		pass(10 * time.Minute)
	})
}
