// SPDX-License-Identifier: Apache-2.0

package bide_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/internal/assert"
)

func TestCloseWaitsForEnqueueMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		engine.takes(enqueue, time.Second)
		client := bide.NewClient(engine, bide.ClientConfig{MaxBatch: 1})
		done := make(chan error, 1)
		go func() {
			_, err := client.EnqueueMany(t.Context(), "orders", make([]bide.Message, 10))
			done <- err
		}()
		pass(500 * time.Millisecond)
		assert.NoError(t, client.Close(t.Context()))
		assert.Equal(t, total(t, client).Enqueued, 10)
		assert.NoError(t, <-done)
	})
}

func TestCloseEndsEnqueueManyWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		engine.set(enqueue, func(ctx context.Context) error { // as engines do
			select {
			case <-time.After(time.Second):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}, nil)
		client := bide.NewClient(engine, bide.ClientConfig{MaxBatch: 1})
		done := make(chan []bide.Result, 1)
		go func() {
			res, _ := client.EnqueueMany(t.Context(), "orders", make([]bide.Message, 10))
			done <- res
		}()
		ctx, cancel := context.WithTimeout(t.Context(), 3500*time.Millisecond)
		defer cancel()
		synctest.Wait()
		assert.ErrorIs(t, client.Close(ctx), context.DeadlineExceeded)
		for i, r := range <-done {
			switch {
			case i < 3:
				assert.NoError(t, r.Err)
			case i == 3:
				assert.ErrorIs(t, r.Err, bide.ErrUnknown)
			default:
				assert.ErrorIs(t, r.Err, bide.ErrClosed)
			}
		}
		assert.Equal(t, len(engine.calls(enqueue)), 4)
	})
}
