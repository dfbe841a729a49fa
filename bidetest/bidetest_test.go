// SPDX-License-Identifier: Apache-2.0

package bidetest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/bidetest"
	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/storage"
)

func TestExample(t *testing.T) { testTimeout(t) }

func TestBubbleSeesBatches(t *testing.T) {
	bidetest.Run(t, func(t *testing.T, b *bidetest.Bubble) {
		bidetest.HandleBatch(b, OrderTimeout, func(_ context.Context, _ string, ds []*bide.Delivery[Order]) error {
			if ds[0].Attempt == 1 {
				ds[0].Decide(errors.New("boom"))
			}
			return nil
		}, bide.BatchConfig{Min: 3, Linger: time.Hour})
		for _, number := range []string{"a", "b"} {
			_, err := OrderTimeout.Enqueue(t.Context(), b.Client, Order{number}, bide.ID(number), bide.Key("k"))
			assert.NoError(t, err)
		}
		b.Pass(59 * time.Minute)
		b.WantSettled(OrderTimeout, "a")
		b.Pass(2 * time.Hour)
		b.WantSettled(OrderTimeout, "b", bidetest.Acked(time.Hour))
		b.WantSettled(OrderTimeout, "a", bidetest.Retried(time.Hour), bidetest.Acked(2*time.Hour+5*time.Second))
	})
}

func TestBubbleSeesEveryOutcome(t *testing.T) {
	begun := time.Now()
	bidetest.Run(t, func(t *testing.T, b *bidetest.Bubble) {
		bidetest.Handle(b, OrderTimeout, func(_ context.Context, d *bide.Delivery[Order]) error {
			switch {
			case d.ID == "dead":
				return bide.DeadLetter(errors.New("never"))
			case d.ID == "later" && d.Deliveries == 1:
				return bide.Snooze(time.Hour)
			case d.ID == "panics" && d.Attempt == 1:
				return []error{}[d.Attempt]
			}
			return nil
		})
		_, err := OrderTimeout.EnqueueMany(t.Context(), b.Client, []Order{{"dead"}, {"later"}, {"panics"}},
			func(o Order, m *bide.Message) { m.ID, m.Delay = o.Number, time.Minute })
		assert.NoError(t, err)
		_, err = OrderTimeout.Enqueue(t.Context(), b.Client, Order{}, bide.ID("no"), bide.In(-1))
		assert.ErrorIs(t, err, bide.ErrInvalid)

		b.Pass(2 * time.Hour)
		assert.Equal(t, b.Now(), 2*time.Hour)
		assert.Equal(t, len(b.Enqueued(OrderTimeout)), 4)
		b.WantEnqueued(OrderTimeout, "later", time.Minute)
		b.WantNotEnqueued(OrderTimeout, "no")
		b.WantSettled(OrderTimeout, "no")
		b.WantSettled(OrderTimeout, "dead", bidetest.Buried(time.Minute))
		b.WantSettled(OrderTimeout, "later", bidetest.Released(time.Minute), bidetest.Acked(time.Minute+time.Hour))
		b.WantSettled(OrderTimeout, "panics", bidetest.Retried(time.Minute), bidetest.Acked(time.Minute+5*time.Second))

		got := b.Settled(OrderTimeout, "dead")[0]
		assert.Equal(t, got.Verdict, storage.Bury)
		assert.Equal(t, got.Attempt, 1)
	})
	assert.True(t, time.Since(begun) < time.Second, "two hours take no time")
}

func TestWantsTellDeathsApart(t *testing.T) {
	bidetest.Run(t, func(t *testing.T, b *bidetest.Bubble) {
		most := 3
		_, err := b.Client.Configure(t.Context(), OrderTimeout.Name(), storage.ConfigEdit{MaxDeliveries: &most})
		assert.NoError(t, err)
		stands := true // still after the first claim
		c := b.NewConsumer(bide.ConsumerConfig{
			Hooks: bide.Hooks{OnClaim: func(string, int, time.Duration, error) {
				if stands {
					stands = false
					b.Pass(2 * time.Second)
				}
			}},
		})
		OrderTimeout.Handle(c, func(ctx context.Context, d *bide.Delivery[Order]) error {
			switch d.ID {
			case "fails":
				return errors.New("boom")
			case "snoozes":
				return bide.Snooze(time.Minute)
			}
			<-ctx.Done()
			return ctx.Err()
		})
		for id, opt := range map[string]bide.Option{
			"fails": bide.MaxAttempts(2), "snoozes": bide.Priority(0), "late": bide.ExpireIn(time.Second), "canceled": bide.Priority(0),
		} {
			_, err := OrderTimeout.Enqueue(t.Context(), b.Client, Order{}, bide.ID(id), opt)
			assert.NoError(t, err)
		}
		b.Start(c)
		b.Pass(10 * time.Second)
		assert.NoError(t, OrderTimeout.Cancel(t.Context(), b.Client, "canceled", bide.Running))
		b.Pass(time.Hour)
		b.WantSettled(OrderTimeout, "fails", bidetest.Retried(2*time.Second), bidetest.Died(7*time.Second))
		b.WantSettled(OrderTimeout, "snoozes", bidetest.Released(2*time.Second), bidetest.Released(62*time.Second),
			bidetest.Want{At: 122 * time.Second, Verdict: storage.Release, Dead: true})
		b.WantSettled(OrderTimeout, "late", bidetest.Expired(2*time.Second))
		lost := b.Settled(OrderTimeout, "canceled")[0].At
		assert.True(t, lost > 10*time.Second && lost < 30*time.Second, lost)
		b.WantSettled(OrderTimeout, "canceled", bidetest.LeaseLost(lost))
	})
}

func TestConsumerIsStoppedByHand(t *testing.T) {
	bidetest.Run(t, func(t *testing.T, b *bidetest.Bubble) {
		done := 0
		c := b.NewConsumer(bide.ConsumerConfig{Hooks: bide.Hooks{
			OnDone: func(*bide.Delivery[[]byte], bide.Done) { done++ },
		}})
		OrderTimeout.Handle(c, func(context.Context, *bide.Delivery[Order]) error { return nil })
		stop := b.Start(c)
		_, err := OrderTimeout.Enqueue(t.Context(), b.Client, Order{}, bide.ID("a"))
		assert.NoError(t, err)
		b.Pass(0)
		assert.NoError(t, stop())
		assert.Equal(t, done, 1)
		b.WantSettled(OrderTimeout, "a", bidetest.Acked(0))
	})
}
