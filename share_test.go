// SPDX-License-Identifier: Apache-2.0

package bide_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/internal/assert"
)

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
