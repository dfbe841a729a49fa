// SPDX-License-Identifier: Apache-2.0

package bide_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/storage"
)

// hangs makes a call wait for the end of its context.
func (f *faulty) hangs(call string) {
	f.set(call, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, nil)
}

func TestRepeatForBoundsTheWaitForATurn(t *testing.T) {
	bubble(t, func(t *testing.T, engine *faulty, client *bide.Client) {
		engine.fails(enqueue, storage.ErrUnavailable)
		begun := time.Now()
		var unknown, unsent atomic.Int64
		var all sync.WaitGroup
		for range 5000 {
			all.Go(func() {
				_, err := orders.Enqueue(t.Context(), client, order{})
				assert.ErrorIs(t, err, bide.ErrUnavailable)
				if errors.Is(err, bide.ErrUnknown) {
					unknown.Add(1)
				} else {
					unsent.Add(1)
				}
				waited := time.Since(begun)
				assert.True(t, waited >= 10*time.Second && waited <= 15*time.Second, waited)
			})
		}
		all.Wait()
		assert.True(t, unknown.Load() > 0 && unsent.Load() > 0, unknown.Load(), unsent.Load())
	})
}

func TestWaitingForAnAvailableEngineHasNoBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		engine.takes(enqueue, time.Second)
		client := bide.NewClient(engine, bide.ClientConfig{MaxBatch: 1, Flights: 1})
		var all sync.WaitGroup
		for range 30 {
			all.Go(func() {
				_, err := orders.Enqueue(t.Context(), client, order{})
				assert.NoError(t, err)
			})
		}
		all.Wait()
		assert.Equal(t, total(t, client).Enqueued, 30)
	})
}

func TestEnqueueThatIsNotAnsweredIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log logged
		engine := newFaulty()
		client := bide.NewClient(engine, bide.ClientConfig{Flights: 1, Logger: slog.New(slog.NewJSONHandler(&log, nil))})
		engine.hangs(enqueue)
		begun := time.Now()
		var all sync.WaitGroup
		for i := range 2 {
			all.Go(func() {
				_, err := orders.Enqueue(t.Context(), client, order{})
				assert.Equal(t, time.Since(begun), 30*time.Second)
				assert.ErrorIs(t, err, bide.ErrUnavailable)
				assert.Equal(t, errors.Is(err, bide.ErrUnknown), i == 0, "the second was not sent")
				assert.True(t, !errors.Is(err, context.DeadlineExceeded), "no context of the caller has ended")
			})
			synctest.Wait()
		}
		all.Wait()
		line := log.lines(t)[0]
		assert.Equal(t, []any{line["level"], line["call"], line["queue"]}, []any{"WARN", "enqueue", "orders"})
	})
}

func TestCallThatWasCutOffIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		client := bide.NewClient(engine, bide.ClientConfig{RepeatFor: time.Minute, Logger: quiet()})
		engine.hangs(enqueue)
		time.AfterFunc(10*time.Second, func() { engine.heals(enqueue) })
		_, err := orders.Enqueue(t.Context(), client, order{})
		assert.NoError(t, err)

		engine.hangs(enqueue)
		time.AfterFunc(10*time.Second, func() { engine.heals(enqueue) })
		_, err = orders.EnqueueMany(t.Context(), client, make([]order, 3), nil)
		assert.NoError(t, err)
		assert.Equal(t, total(t, client).Enqueued, 4)
	})
}

func TestEnqueueManyGivesUpOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		client := bide.NewClient(engine, bide.ClientConfig{MaxBatch: 1})
		engine.fails(enqueue, storage.ErrUnavailable)
		begun := time.Now()
		res, err := orders.EnqueueMany(t.Context(), client, make([]order, 100), nil)
		assert.ErrorIs(t, err, bide.ErrUnavailable)
		assert.True(t, time.Since(begun) < 16*time.Second, time.Since(begun))
		for i, r := range res {
			assert.ErrorIs(t, r.Err, bide.ErrUnavailable)
			assert.Equal(t, errors.Is(r.Err, bide.ErrUnknown), i == 0, "only the first was sent")
		}
	})
}

func TestSettlementThatIsNotAnsweredIsRepeated(t *testing.T) {
	bubble(t, func(t *testing.T, engine *faulty, client *bide.Client) {
		put(t, client, "a")
		engine.hangs(settle)
		consumer := bide.NewConsumer(client, bide.ConsumerConfig{Lease: 30 * time.Second})
		orders.Handle(consumer, func(context.Context, *bide.Delivery[order]) error { return nil })
		stop := start(t, consumer)
		pass(15 * time.Second)
		engine.heals(settle)
		pass(10 * time.Second)
		assert.Equal(t, total(t, client), storage.Counters{Enqueued: 1, Claimed: 1, Acked: 1})
		assert.NoError(t, stop())
	})
}

func TestSettlementsThatAreNeverAnsweredDoNotWedgeTheConsumer(t *testing.T) {
	bubble(t, func(t *testing.T, engine *faulty, client *bide.Client) {
		_, err := orders.EnqueueMany(t.Context(), client, make([]order, 50), nil)
		assert.NoError(t, err)
		engine.hangs(settle)
		var mu sync.Mutex
		handled := map[string]bool{}
		var unknown atomic.Int64
		consumer := bide.NewConsumer(client, bide.ConsumerConfig{
			Concurrency: 4,
			Logger:      quiet(),
			Hooks: bide.Hooks{OnDone: func(_ *bide.Delivery[[]byte], done bide.Done) {
				if errors.Is(done.Settle, bide.ErrUnknown) && errors.Is(done.Settle, bide.ErrUnavailable) {
					unknown.Add(1)
				}
			}},
		})
		orders.Handle(consumer, func(_ context.Context, d *bide.Delivery[order]) error {
			mu.Lock()
			defer mu.Unlock()
			handled[d.ID] = true
			return nil
		})
		stop := start(t, consumer)
		pass(time.Hour)
		mu.Lock()
		assert.Equal(t, len(handled), 50)
		mu.Unlock()
		assert.True(t, unknown.Load() >= 50, unknown.Load())
		engine.heals(settle)
		pass(10 * time.Minute)
		assert.Equal(t, total(t, client).Acked, 50)
		assert.NoError(t, stop())
	})
}

func TestClaimThatIsNotAnsweredIsCutOff(t *testing.T) {
	for name, call := range map[string]func(engine *faulty){
		"it did nothing": func(engine *faulty) { engine.hangs(claim) },
		"it has happened": func(engine *faulty) {
			engine.set(claim, nil, func() error { pass(31 * time.Second); return context.DeadlineExceeded })
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, engine *faulty, client *bide.Client) {
				var log logged
				put(t, client, "a")
				call(engine)
				consumer := bide.NewConsumer(client, bide.ConsumerConfig{Logger: slog.New(slog.NewJSONHandler(&log, nil))})
				handled := make(chan time.Time, 1)
				orders.Handle(consumer, func(context.Context, *bide.Delivery[order]) error {
					handled <- time.Now()
					return nil
				})
				stop := start(t, consumer)
				begun := time.Now()
				pass(time.Second)
				engine.heals(claim)
				waited := (<-handled).Sub(begun)
				assert.True(t, waited >= 30*time.Second && waited < 35*time.Second, waited)
				assert.NoError(t, stop())
				line := log.lines(t)[0]
				assert.Equal(t, []any{line["level"], line["queue"]}, []any{"WARN", "orders"})
			})
		})
	}
}
