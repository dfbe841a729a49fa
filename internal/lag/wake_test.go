// SPDX-License-Identifier: Apache-2.0

//go:build timed

package lag

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/internal/assert"
)

const (
	wakes = 200
	idle  = 20 * time.Millisecond // before each message, so that its consumer sleeps
)

// R8: a message for a consumer that has nothing to do reaches its handler within milliseconds of its
// enqueue. A consumer that polled every so often would be late by half of that.
func TestWake(t *testing.T) {
	for name, open := range engines {
		t.Run(name, func(t *testing.T) {
			engine := open(t)
			defer func() { assert.NoError(t, engine.Close()) }()
			client := bide.NewClient(engine, bide.ClientConfig{})
			queue := bide.NewQueue[[]byte]("wake")
			began := make(chan time.Time)
			consumer := bide.NewConsumer(client, bide.ConsumerConfig{})
			queue.Handle(consumer, func(context.Context, *bide.Delivery[[]byte]) error {
				began <- time.Now()
				return nil
			})
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			ran := make(chan error, 1)
			go func() { ran <- consumer.Run(ctx) }()
			lags := make([]time.Duration, wakes)
			for i := range lags {
				<-time.After(idle)
				_, err := queue.Enqueue(ctx, client, nil)
				assert.NoError(t, err)
				stored := time.Now()
				select {
				case at := <-began:
					lags[i] = max(0, at.Sub(stored))
				case <-ctx.Done():
					t.Fatal("slept through message", i)
				}
			}
			stop()
			assert.NoError(t, <-ran)
			slices.Sort(lags)
			p99 := quantile(lags, 0.99)
			fmt.Fprintf(os.Stdout, "wake on %-11s of %d messages, one at a time: p50 %s, p99 %s, max %s\n", name, wakes, quantile(lags, 0.5), p99, quantile(lags, 1))
			assert.True(t, p99 < slack, "p99 is", p99)
		})
	}
}
