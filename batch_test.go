// SPDX-License-Identifier: Apache-2.0

package bide_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/storage"
)

func TestEnqueueAloneWaitsForNothing(t *testing.T) {
	bubble(t, func(t *testing.T, engine *faulty, client *bide.Client) {
		begun := time.Now()
		put(t, client, "a")
		put(t, client, "b")
		assert.Equal(t, time.Since(begun), 0)
		assert.Equal(t, engine.calls(enqueue), []int{1, 1})
	})
}

func TestConcurrentEnqueuesTravelTogether(t *testing.T) {
	bubble(t, func(t *testing.T, engine *faulty, client *bide.Client) {
		engine.takes(enqueue, 10*time.Millisecond)
		begun := time.Now()
		var all sync.WaitGroup
		for i := range 500 {
			all.Go(func() {
				id := fmt.Sprint(i)
				res, err := orders.Enqueue(t.Context(), client, order{}, bide.ID(id))
				assert.NoError(t, err)
				assert.Equal(t, res.ID, id)
				assert.Equal(t, res.Outcome, storage.Stored)
			})
		}
		all.Wait()
		sizes := engine.calls(enqueue)
		assert.True(t, len(sizes) <= 5, sizes)
		assert.True(t, slices.Max(sizes) <= 256, sizes)
		assert.True(t, time.Since(begun) <= 30*time.Millisecond, time.Since(begun))
		assert.Equal(t, total(t, client), storage.Counters{Enqueued: 500})
	})
}

func TestQueuesDoNotWaitForEachOther(t *testing.T) {
	bubble(t, func(t *testing.T, engine *faulty, client *bide.Client) {
		engine.takes(enqueue, 10*time.Millisecond)
		begun := time.Now()
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() {
				_, err := client.Enqueue(t.Context(), fmt.Sprint("queue", i), bide.Message{})
				assert.NoError(t, err)
			})
		}
		all.Wait()
		assert.Equal(t, time.Since(begun), 10*time.Millisecond)
	})
}

func TestBatchIsBoundedByBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		client := bide.NewClient(engine, bide.ClientConfig{MaxBatchBytes: 1000, Flights: 1})
		engine.takes(enqueue, time.Millisecond)
		var all sync.WaitGroup
		for range 9 {
			all.Go(func() {
				_, err := client.Enqueue(t.Context(), "raw", bide.Message{Body: make([]byte, 400)})
				assert.NoError(t, err)
			})
		}
		all.Go(func() { // more than fits goes alone
			_, err := client.Enqueue(t.Context(), "raw", bide.Message{Body: make([]byte, 4000)})
			assert.NoError(t, err)
		})
		all.Wait()
		assert.True(t, slices.Max(engine.calls(enqueue)) == 2, engine.calls(enqueue))
	})
}

func TestBadMessageFailsAlone(t *testing.T) {
	bubble(t, func(t *testing.T, engine *faulty, client *bide.Client) {
		engine.takes(enqueue, time.Millisecond)
		var all sync.WaitGroup
		for i := range 10 {
			all.Go(func() {
				priority := 0
				if i == 5 {
					priority = 10
				}
				_, err := orders.Enqueue(t.Context(), client, order{}, bide.Priority(priority))
				assert.Equal(t, errors.Is(err, bide.ErrInvalid), i == 5)
			})
		}
		all.Wait()
		assert.Equal(t, total(t, client), storage.Counters{Enqueued: 9})
	})
}

func TestCanceledBeforeItWasSentIsNotSent(t *testing.T) {
	bubble(t, func(t *testing.T, engine *faulty, client *bide.Client) {
		engine.takes(enqueue, 10*time.Millisecond)
		for range 2 { // both flights are away
			go func() { _, _ = orders.Enqueue(t.Context(), client, order{}) }()
			synctest.Wait()
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		defer cancel()
		_, err := orders.Enqueue(ctx, client, order{}, bide.ID("late"))
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.True(t, !errors.Is(err, bide.ErrUnknown), err)
		assert.NoError(t, client.Close(t.Context()))
		_, err = client.Get(t.Context(), "orders", "late")
		assert.ErrorIs(t, err, bide.ErrNotFound)
	})
}

func TestCanceledAfterItWasSentIsUnknown(t *testing.T) {
	bubble(t, func(t *testing.T, engine *faulty, client *bide.Client) {
		engine.takes(enqueue, 10*time.Millisecond)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		defer cancel()
		begun := time.Now()
		res, err := orders.Enqueue(ctx, client, order{})
		assert.Equal(t, time.Since(begun), 5*time.Millisecond)
		assert.ErrorIs(t, err, bide.ErrUnknown)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		unknown, ok := errors.AsType[*bide.UnknownError](err)
		assert.True(t, ok)
		assert.Equal(t, unknown.ID, res.ID)

		pass(time.Second) // the call was not cut off, and repeating it does no harm
		res, err = orders.Enqueue(t.Context(), client, order{}, bide.ID(res.ID))
		assert.NoError(t, err)
		assert.Equal(t, res.Outcome, storage.Duplicate)
	})
}

func TestContextThatHasEndedSendsNothing(t *testing.T) {
	bubble(t, func(t *testing.T, engine *faulty, client *bide.Client) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := orders.Enqueue(ctx, client, order{})
		assert.Equal(t, err, error(context.Canceled))
		assert.Equal(t, len(engine.calls(enqueue)), 0)
	})
}

func TestLostAnswersAreRepeated(t *testing.T) {
	bubble(t, func(t *testing.T, engine *faulty, client *bide.Client) {
		engine.loses(enqueue, 3)
		res, err := orders.Enqueue(t.Context(), client, order{})
		assert.NoError(t, err)
		assert.Equal(t, res.Outcome, storage.Stored) // nobody else has this id, so it is ours

		engine.loses(enqueue, 1)
		res, err = orders.Enqueue(t.Context(), client, order{}, bide.ID("mine"))
		assert.NoError(t, err)
		assert.Equal(t, res.Outcome, storage.Duplicate)

		engine.loses(enqueue, 2)
		many, err := orders.EnqueueMany(t.Context(), client, make([]order, 3), nil)
		assert.NoError(t, err)
		assert.Equal(t, many[2].Outcome, storage.Stored)
		assert.Equal(t, total(t, client).Enqueued, 5)
	})
}

func TestUnavailableEngineIsGivenUp(t *testing.T) {
	bubble(t, func(t *testing.T, engine *faulty, client *bide.Client) {
		engine.fails(enqueue, fmt.Errorf("dial: %w", storage.ErrUnavailable))
		begun := time.Now()
		res, err := orders.Enqueue(t.Context(), client, order{})
		assert.ErrorIs(t, err, bide.ErrUnknown)
		assert.ErrorIs(t, err, bide.ErrUnavailable)
		assert.True(t, res.ID != "")
		assert.True(t, time.Since(begun) >= 10*time.Second && time.Since(begun) < 16*time.Second, time.Since(begun))

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = orders.Enqueue(ctx, client, order{})
		assert.ErrorIs(t, err, bide.ErrUnknown)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

func TestOtherErrorsAreNotRepeated(t *testing.T) {
	bubble(t, func(t *testing.T, engine *faulty, client *bide.Client) {
		boom := errors.New("boom")
		engine.fails(enqueue, boom)
		_, err := orders.Enqueue(t.Context(), client, order{})
		assert.ErrorIs(t, err, boom)
		assert.ErrorIs(t, err, bide.ErrUnknown)
		_, err = orders.EnqueueMany(t.Context(), client, make([]order, 2), nil)
		assert.ErrorIs(t, err, boom)
		assert.Equal(t, engine.calls(enqueue), []int{1, 2})
	})
}

func TestCloseFlushes(t *testing.T) {
	bubble(t, func(t *testing.T, engine *faulty, client *bide.Client) {
		engine.takes(enqueue, time.Second)
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				_, err := orders.Enqueue(t.Context(), client, order{})
				assert.NoError(t, err)
			})
		}
		synctest.Wait()
		assert.NoError(t, client.Close(t.Context()))
		assert.Equal(t, total(t, client).Enqueued, 10)
		all.Wait()

		_, err := orders.Enqueue(t.Context(), client, order{})
		assert.ErrorIs(t, err, bide.ErrClosed)
		assert.True(t, !errors.Is(err, bide.ErrUnknown), err)
		_, err = orders.EnqueueMany(t.Context(), client, make([]order, 2), nil)
		assert.ErrorIs(t, err, bide.ErrClosed)
		assert.NoError(t, client.Close(t.Context()), "closing twice")
	})
}

func TestCloseGivesUpWithItsContext(t *testing.T) {
	bubble(t, func(t *testing.T, engine *faulty, client *bide.Client) {
		engine.set(enqueue, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, nil)
		result := make(chan error, 1)
		go func() {
			_, err := orders.Enqueue(t.Context(), client, order{})
			result <- err
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		assert.ErrorIs(t, client.Close(ctx), context.DeadlineExceeded)
		assert.ErrorIs(t, <-result, bide.ErrUnknown)
	})
}

func TestSettlementsTravelTogether(t *testing.T) {
	bubble(t, func(t *testing.T, engine *faulty, client *bide.Client) {
		_, err := orders.EnqueueMany(t.Context(), client, make([]order, 100), nil)
		assert.NoError(t, err)
		held, err := client.Claim(t.Context(), "orders", bide.ClaimOptions{Limit: 100})
		assert.NoError(t, err)
		engine.takes(settle, time.Millisecond)
		var all sync.WaitGroup
		for i, h := range held {
			all.Go(func() {
				var err error
				switch i % 4 {
				case 0:
					err = h.Ack(t.Context())
				case 1:
					err = h.Retry(t.Context(), time.Hour, errors.New("not yet"))
				case 2:
					err = h.Release(t.Context(), time.Minute)
				case 3:
					err = h.Bury(t.Context(), nil)
				}
				assert.NoError(t, err)
			})
		}
		all.Wait()
		assert.True(t, len(engine.calls(settle)) <= 3, engine.calls(settle))
		got := total(t, client)
		assert.Equal(t, got, storage.Counters{Enqueued: 100, Claimed: 100, Acked: 25, Retried: 25, Released: 25, Died: 25})

		assert.ErrorIs(t, held[0].Ack(t.Context()), bide.ErrLeaseLost)
		assert.ErrorIs(t, held[1].Retry(t.Context(), -time.Second, nil), bide.ErrInvalid)
	})
}

func TestLostAnswerOfSettlementIsUnknown(t *testing.T) {
	bubble(t, func(t *testing.T, engine *faulty, client *bide.Client) {
		put(t, client, "a")
		held, err := client.Claim(t.Context(), "orders", bide.ClaimOptions{})
		assert.NoError(t, err)
		engine.loses(settle, 1)
		err = held[0].Ack(t.Context())
		assert.ErrorIs(t, err, bide.ErrUnknown)
		assert.ErrorIs(t, err, bide.ErrLeaseLost)
		assert.Equal(t, total(t, client).Acked, 1)
	})
}
