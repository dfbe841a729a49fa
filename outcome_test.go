// SPDX-License-Identifier: Apache-2.0

package bide_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/storage"
)

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
		assert.True(t, ok && strings.Contains(string(p.Stack), "outcome_test.go"), errs[0])
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

// spiteful is an error that cannot be told.
type spiteful struct{ text string }

func (e *spiteful) Error() string { return e.text }

func TestPanicsOfErrorsAndBackoffsAreRetried(t *testing.T) {
	for name, c := range map[string]struct {
		err     error
		backoff bide.Backoff
	}{
		"typed nil error":   {(*spiteful)(nil), nil},
		"backoff panics":    {errors.New("boom"), func(attempt int) time.Duration { return []time.Duration{}[attempt-1] }},
		"wrapped typed nil": {errors.Join(errors.New("boom"), bide.RetryIn(time.Hour, (*spiteful)(nil))), nil},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) {
				put(t, client, "a")
				var done bide.Done
				consumer := bide.NewConsumer(client, bide.ConsumerConfig{
					Backoff: c.backoff,
					Logger:  slog.New(slog.NewJSONHandler(t.Output(), nil)),
					Hooks:   bide.Hooks{OnDone: func(_ *bide.Delivery[[]byte], d bide.Done) { done = d }},
				})
				orders.Handle(consumer, func(context.Context, *bide.Delivery[order]) error { return c.err })
				stop := start(t, consumer)
				pass(time.Second)
				assert.NoError(t, stop())
				assert.Equal(t, done.Verdict, storage.Retry)
				assert.True(t, done.Delay >= 4*time.Second && done.Delay <= 6*time.Second, done.Delay)
				_, panicked := errors.AsType[*bide.PanicError](done.Err)
				assert.True(t, panicked, done.Err)
				r, err := client.Get(t.Context(), "orders", "a")
				assert.NoError(t, err)
				assert.True(t, strings.HasPrefix(r.Reason, "handler panicked: "), r.Reason)
			})
		})
	}
}
