// SPDX-License-Identifier: Apache-2.0

package bide_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/storage"
)

// Consumers of random concurrency, on random queues of an engine that takes its time, with handlers
// that are fast, slow, stall, come in batches or end their goroutines, never stand still while there
// are messages, and handle each once.
func TestNoConsumerStandsStill(t *testing.T) {
	const each = 250 // messages of a queue; with many more the race detector gives up, it counts synchronizations
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			bubble(t, func(t *testing.T, engine *faulty, client *bide.Client) {
				g := rand.New(rand.NewPCG(seed, 0))
				for _, call := range []string{claim, settle, extend} {
					engine.takes(call, []time.Duration{0, 100 * time.Microsecond, time.Millisecond, 20 * time.Millisecond}[g.IntN(4)])
				}
				var queues []string
				for i := range 1 + g.IntN(5) {
					queues = append(queues, fmt.Sprint("queue", i))
					_, err := client.EnqueueMany(t.Context(), queues[i], make([]bide.Message, each))
					assert.NoError(t, err)
				}
				stop := start(t, randomConsumer(g, client, queues))
				for range g.IntN(3) { // the first goes, another one comes
					pass(time.Duration(g.IntN(100)) * time.Millisecond)
					assert.NoError(t, stop())
					stop = start(t, randomConsumer(g, client, queues))
				}
				left, still := int64(1), 0
				for left > 0 {
					pass(50 * time.Millisecond)
					before := left
					left = 0
					for _, queue := range queues {
						s, err := client.Stats(t.Context(), queue)
						assert.NoError(t, err)
						left += s.Ready + s.Leased
					}
					if still++; left != before {
						still = 0
					}
					assert.True(t, still < 10, left, "messages are left, nothing happens")
				}
				assert.NoError(t, stop())
				for _, queue := range queues {
					s, err := client.Stats(t.Context(), queue)
					assert.NoError(t, err)
					assert.Equal(t, []int64{s.Total.Acked, s.Total.Lapsed}, []int64{each, 0})
				}
			})
		})
	}
}

func randomConsumer(g *rand.Rand, client *bide.Client, queues []string) *bide.Consumer {
	c := bide.NewConsumer(client, bide.ConsumerConfig{
		Concurrency: 1 + g.IntN(8), Logger: quiet(), Backoff: func(int) time.Duration { return 0 },
	})
	for _, queue := range queues {
		h := randomHandler(g)
		if g.IntN(4) > 0 {
			c.Handle(queue, func(context.Context, *bide.Delivery[[]byte]) error { return h() })
			continue
		}
		c.HandleBatch(storage.Scope{Queue: queue}, func(context.Context, string, []*bide.Delivery[[]byte]) error { return h() },
			bide.BatchConfig{Max: 1 + g.IntN(10)})
	}
	return c
}

// randomHandler takes up to twice a time, stalls now and then, or ends its goroutine.
func randomHandler(g *rand.Rand) func() error {
	takes := []time.Duration{0, 50 * time.Microsecond, time.Millisecond, 30 * time.Millisecond}[g.IntN(4)]
	stalls, ends, seed := g.IntN(3) == 0, g.IntN(4) == 0, g.Uint64()
	var calls atomic.Uint64
	return func() error {
		g := rand.New(rand.NewPCG(seed, calls.Add(1)))
		if takes > 0 {
			pass(time.Duration(g.Int64N(int64(2 * takes))))
		}
		if stalls && g.IntN(100) == 0 {
			pass(250 * time.Millisecond)
		}
		if ends && g.IntN(50) == 0 {
			runtime.Goexit()
		}
		return nil
	}
}
