// SPDX-License-Identifier: Apache-2.0

package bide_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/storage"
)

// bury makes n dead messages.
func bury(t *testing.T, client *bide.Client, n int) []string {
	t.Helper()
	ids := schedule(t, client, n, func(int) time.Duration { return 0 })
	held, err := client.Claim(t.Context(), "orders", bide.ClaimOptions{Limit: n})
	assert.NoError(t, err)
	for _, h := range held {
		assert.NoError(t, h.Bury(t.Context(), errors.New("boom")))
	}
	return ids
}

func TestRedriveKeepsItsPace(t *testing.T) {
	for _, c := range []struct {
		rate  float64
		dead  int
		takes time.Duration
		step  int // at most this many at once
	}{
		{rate: 100, dead: 500, takes: 4900 * time.Millisecond, step: 10},
		{rate: 5, dead: 20, takes: 3800 * time.Millisecond, step: 1},
		{rate: 1.0 / 60, dead: 3, takes: 2 * time.Minute, step: 1},
		{rate: 1e6, dead: 500, takes: 400 * time.Microsecond, step: 200},
	} {
		bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) {
			bury(t, client, c.dead)
			start, before := time.Now(), 0
			b, err := client.RedriveWith(t.Context(), "orders", storage.Filter{}, bide.RedriveConfig{
				PerSecond: c.rate,
				Progress: func(sum storage.Batch) {
					assert.True(t, sum.Count-before <= c.step, sum.Count-before)
					allowed := float64(c.step) + c.rate*time.Since(start).Seconds()
					assert.True(t, float64(sum.Count) <= allowed+0.001, sum.Count, allowed)
					before = sum.Count
				},
			})
			assert.NoError(t, err)
			assert.Equal(t, []int{b.Count, before}, []int{c.dead, c.dead})
			took := time.Since(start)
			assert.True(t, took >= c.takes-time.Microsecond && took <= c.takes+time.Millisecond, c.rate, took)
		})
	}
}

// A redrive that was stopped says what it did, and goes on where it was.
func TestRedriveIsStoppedAndGoesOn(t *testing.T) {
	bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) {
		ids := bury(t, client, 100)
		put(t, client, ids[0]) // a live namesake, to be skipped
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second+50*time.Millisecond)
		defer cancel()
		config := bide.RedriveConfig{PerSecond: 10}
		first, err := client.RedriveWith(ctx, "orders", storage.Filter{}, config)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, []int{first.Count, first.Skipped}, []int{41, 1})
		assert.True(t, first.More)

		rest, err := client.RedriveWith(t.Context(), "orders", storage.Filter{After: first.Last}, config)
		assert.NoError(t, err)
		assert.Equal(t, []int{rest.Count, rest.Skipped}, []int{58, 0})
		assert.Equal(t, idsOf(t, client, storage.Filter{State: storage.Dead}), ids[:1])
	})
}

// What dies again while it is redriven does not go round.
func TestRedriveEndsBesideHandlersThatFail(t *testing.T) {
	bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) {
		bury(t, client, 20)
		consumer := bide.NewConsumer(client, bide.ConsumerConfig{})
		consumer.Handle("orders", func(context.Context, *bide.Delivery[[]byte]) error {
			pass(time.Millisecond) // the instants of death are as fine as that
			return bide.DeadLetter(nil)
		})
		stop := start(t, consumer)
		b, err := client.RedriveWith(t.Context(), "orders", storage.Filter{}, bide.RedriveConfig{PerSecond: 5})
		assert.NoError(t, err)
		assert.Equal(t, b.Count, 20)
		assert.NoError(t, stop())
		assert.Equal(t, total(t, client).Redriven, 20)
	})
}

func TestRedriveOfSome(t *testing.T) {
	bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) {
		ids := bury(t, client, 30)
		paced := func(f storage.Filter) int {
			b, err := client.RedriveWith(t.Context(), "orders", f, bide.RedriveConfig{PerSecond: 20})
			assert.NoError(t, err)
			return b.Count
		}
		assert.Equal(t, paced(storage.Filter{Limit: 7}), 7)
		assert.Equal(t, paced(storage.Filter{ID: ids[20]}), 1)
		assert.Equal(t, paced(storage.Filter{To: time.Now().Add(-time.Hour)}), 0)
		assert.Equal(t, paced(storage.Filter{}), 22)
	})
}

func TestRatesThatAreNone(t *testing.T) {
	bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) {
		bury(t, client, 1)
		for _, rate := range []float64{-1, -0.0001, 1e-9, math.NaN(), math.Inf(1), math.Inf(-1), 1e300} {
			_, err := client.RedriveWith(t.Context(), "orders", storage.Filter{}, bide.RedriveConfig{PerSecond: rate})
			assert.ErrorIs(t, err, bide.ErrInvalid, rate)
		}
		assert.Equal(t, total(t, client).Redriven, 0)
	})
}
