// SPDX-License-Identifier: Apache-2.0

package bide_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
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

func TestConcurrencyIsKept(t *testing.T) {
	bubble(t, func(t *testing.T, engine *faulty, client *bide.Client) {
		_, err := orders.EnqueueMany(t.Context(), client, make([]order, 100), nil)
		assert.NoError(t, err)
		begun := time.Now()
		var running, most, done atomic.Int64
		consumer := bide.NewConsumer(client, bide.ConsumerConfig{Concurrency: 10})
		finished := make(chan struct{})
		orders.Handle(consumer, func(context.Context, *bide.Delivery[order]) error {
			n := running.Add(1)
			defer running.Add(-1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			pass(time.Second)
			if done.Add(1) == 100 {
				close(finished)
			}
			return nil
		})
		stop := start(t, consumer)
		<-finished
		assert.Equal(t, time.Since(begun), 10*time.Second)
		assert.Equal(t, most.Load(), 10)
		assert.Equal(t, slices.Max(engine.calls(claim)), 10)
		assert.NoError(t, stop())
		assert.Equal(t, total(t, client).Acked, 100)
	})
}

func TestWeightsShareHandlers(t *testing.T) {
	for _, concurrency := range []int{1, 4, 32} {
		t.Run(fmt.Sprint(concurrency), func(t *testing.T) {
			bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) {
				counts := map[string]*atomic.Int64{"heavy": {}, "light": {}}
				consumer := bide.NewConsumer(client, bide.ConsumerConfig{
					Concurrency: concurrency,
					Queues:      map[string]int{"heavy": 3, "light": 1},
				})
				for queue, count := range counts {
					_, err := client.EnqueueMany(t.Context(), queue, make([]bide.Message, 4000))
					assert.NoError(t, err)
					consumer.Handle(queue, func(context.Context, *bide.Delivery[[]byte]) error {
						count.Add(1)
						pass(time.Second)
						return nil
					})
				}
				stop := start(t, consumer)
				pass(100*time.Second + time.Millisecond)
				heavy, light := counts["heavy"].Load(), counts["light"].Load()
				assert.NoError(t, stop())
				share := float64(heavy) / float64(heavy+light)
				assert.True(t, share > 0.72 && share < 0.78, heavy, light)
				assert.True(t, heavy+light >= int64(100*concurrency), "no handler is idle", heavy, light)
			})
		})
	}
}

func TestSlowHandlersDoNotStarveOtherQueues(t *testing.T) {
	bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) {
		_, err := client.EnqueueMany(t.Context(), "slow", make([]bide.Message, 1000))
		assert.NoError(t, err)
		var quick atomic.Int64
		consumer := bide.NewConsumer(client, bide.ConsumerConfig{Concurrency: 8, DrainTimeout: time.Hour})
		consumer.Handle("slow", func(context.Context, *bide.Delivery[[]byte]) error {
			pass(time.Minute)
			return nil
		})
		consumer.Handle("quick", func(context.Context, *bide.Delivery[[]byte]) error {
			pass(10 * time.Millisecond)
			quick.Add(1)
			return nil
		})
		stop := start(t, consumer)
		pass(time.Hour) // the slow ones have everything
		_, err = client.EnqueueMany(t.Context(), "quick", make([]bide.Message, 4000))
		assert.NoError(t, err)
		pass(time.Minute + 20*time.Second)
		assert.True(t, quick.Load() >= 4000, quick.Load())
		assert.NoError(t, stop())
	})
}

func TestOutcomes(t *testing.T) {
	boom := errors.New("boom")
	for name, c := range map[string]struct {
		err      error
		want     storage.State
		due      time.Duration // from the claim on
		attempts int
		reason   string
	}{
		"snooze":             {bide.Snooze(time.Minute), storage.Delayed, time.Minute, 0, ""},
		"snooze in a chain":  {fmt.Errorf("locked: %w", bide.Snooze(time.Minute)), storage.Delayed, time.Minute, 0, "locked: snooze for 1m0s"},
		"retry in":           {bide.RetryIn(time.Hour, boom), storage.Delayed, time.Hour, 1, "boom"},
		"retry in, joined":   {errors.Join(boom, bide.RetryIn(time.Hour, nil)), storage.Delayed, time.Hour, 1, "boom\nretry"},
		"negative":           {bide.RetryIn(-time.Hour, boom), storage.Ready, 0, 1, "boom"},
		"error":              {boom, storage.Delayed, 42 * time.Second, 1, "boom"},
		"dead letter":        {bide.DeadLetter(boom), storage.Dead, 0, 1, "boom"},
		"dead letter wins":   {errors.Join(bide.Snooze(1), bide.DeadLetter(boom)), storage.Dead, 0, 1, "snooze for 1ns\nboom"},
		"invalid characters": {errors.New("a\xffb"), storage.Delayed, 42 * time.Second, 1, "a?b"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) {
				put(t, client, "a")
				begun := time.Now()
				consumer := bide.NewConsumer(client, bide.ConsumerConfig{
					Backoff: func(int) time.Duration { return 42 * time.Second },
				})
				first := true
				block := make(chan struct{})
				orders.Handle(consumer, func(context.Context, *bide.Delivery[order]) error {
					if !first {
						<-block
					}
					first = false
					return c.err
				})
				stop := start(t, consumer)
				synctest.Wait()
				r, err := client.Get(t.Context(), "orders", "a")
				assert.NoError(t, err)
				if c.due > 0 {
					assert.Equal(t, r.State, c.want)
					assert.Equal(t, r.Attempts, c.attempts)
					assert.Equal(t, r.Due, begun.Add(c.due))
				} else if c.want == storage.Dead {
					assert.Equal(t, r.State, storage.Dead)
				}
				assert.Equal(t, r.Reason, c.reason)
				close(block)
				assert.NoError(t, stop())
			})
		})
	}
}

func TestRetriesBackOffUntilTheMessageIsDead(t *testing.T) {
	bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) {
		put(t, client, "a", bide.MaxAttempts(5))
		begun := time.Now()
		var at []time.Duration
		var last []bool
		consumer := bide.NewConsumer(client, bide.ConsumerConfig{
			Backoff: func(attempt int) time.Duration { return time.Hour << attempt },
		})
		orders.Handle(consumer, func(_ context.Context, d *bide.Delivery[order]) error {
			at = append(at, time.Since(begun))
			last = append(last, d.Last())
			assert.Equal(t, d.Attempt, len(at))
			return errors.New("boom")
		})
		stop := start(t, consumer)
		pass(1000 * time.Hour)
		assert.NoError(t, stop())
		assert.Equal(t, at, []time.Duration{0, 2 * time.Hour, 6 * time.Hour, 14 * time.Hour, 30 * time.Hour})
		assert.Equal(t, last, []bool{false, false, false, false, true})
		assert.Equal(t, total(t, client), storage.Counters{Enqueued: 1, Claimed: 5, Retried: 5, Died: 1})
		for m, err := range orders.Messages(t.Context(), client, storage.Dead) {
			assert.NoError(t, err)
			assert.Equal(t, m.Body, order{Number: "a"})
			assert.Equal(t, m.Reason, "boom")
		}
	})
}

func TestSnoozeSpendsNoAttempt(t *testing.T) {
	bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) {
		put(t, client, "a", bide.MaxAttempts(1))
		consumer := bide.NewConsumer(client, bide.ConsumerConfig{})
		var deliveries []int
		orders.Handle(consumer, func(_ context.Context, d *bide.Delivery[order]) error {
			assert.Equal(t, d.Attempt, 1)
			deliveries = append(deliveries, d.Deliveries)
			if d.Deliveries < 4 {
				return bide.Snooze(time.Hour)
			}
			return nil
		})
		stop := start(t, consumer)
		pass(10 * time.Hour)
		assert.NoError(t, stop())
		assert.Equal(t, deliveries, []int{1, 2, 3, 4})
	})
}

func TestPanicsAndGoexitsAreRetried(t *testing.T) {
	bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) {
		put(t, client, "a")
		var mu sync.Mutex
		var errs []error
		consumer := bide.NewConsumer(client, bide.ConsumerConfig{
			Concurrency: 1,
			Hooks: bide.Hooks{OnDone: func(_ *bide.Delivery[[]byte], done bide.Done) {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, done.Err)
			}},
		})
		orders.Handle(consumer, func(_ context.Context, d *bide.Delivery[order]) error {
			switch d.Attempt {
			case 1:
				return []error{}[d.Attempt]
			case 2:
				runtime.Goexit()
			}
			return nil
		})
		stop := start(t, consumer)
		pass(time.Hour)
		assert.NoError(t, stop())
		assert.Equal(t, len(errs), 3)
		p, ok := errors.AsType[*bide.PanicError](errs[0])
		assert.True(t, ok && strings.Contains(string(p.Stack), "consumer_test.go"), errs[0])
		_, ok = errors.AsType[runtime.Error](errs[0])
		assert.True(t, ok, errs[0])
		assert.ErrorIs(t, errs[1], bide.ErrGoexit)
		assert.NoError(t, errs[2])
	})
}

func TestBodyThatDoesNotDecodeIsDead(t *testing.T) {
	bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) {
		_, err := client.Enqueue(t.Context(), "orders", bide.Message{ID: "bad", Body: []byte("{")})
		assert.NoError(t, err)
		consumer := bide.NewConsumer(client, bide.ConsumerConfig{})
		orders.Handle(consumer, func(context.Context, *bide.Delivery[order]) error {
			t.Error("handler was called")
			return nil
		})
		stop := start(t, consumer)
		synctest.Wait()
		m, err := orders.Get(t.Context(), client, "bad")
		assert.ErrorIs(t, err, bide.ErrDecode)
		assert.Equal(t, m.State, storage.Dead)
		assert.Equal(t, m.Reason, "body does not decode: unexpected end of JSON input")
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
