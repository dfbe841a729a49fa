// SPDX-License-Identifier: Apache-2.0

package bide_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/storage"
)

// Calls fail and answers get lost at random, handlers do everything that handlers do, and still
// every message is handled, not before its time, and acked once.
func TestCrowdOnAnEngineThatFails(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	synctest.Test(t, func(t *testing.T) {
		t.Logf("seed %d", seed)
		var mu sync.Mutex // guards what follows
		random := rand.New(rand.NewPCG(seed, 0))
		roll := func(n int) int {
			mu.Lock()
			defer mu.Unlock()
			return random.IntN(n)
		}
		due := map[string]time.Time{}
		handled := map[string]int{}

		engine := newFaulty()
		for _, call := range []string{enqueue, claim, extend, settle, wait} {
			engine.set(call, func(context.Context) error {
				pass(time.Duration(roll(5)) * time.Millisecond)
				if roll(20) == 0 {
					return fmt.Errorf("refused: %w", storage.ErrUnavailable)
				}
				return nil
			}, func() error {
				if roll(20) == 0 {
					return fmt.Errorf("answer lost: %w", storage.ErrUnavailable)
				}
				return nil
			})
		}

		const n = 600
		client := bide.NewClient(engine, bide.ClientConfig{Logger: quiet(), MaxBatch: 10})
		var producers sync.WaitGroup
		for i := range n {
			producers.Go(func() {
				pass(time.Duration(roll(5000)) * time.Millisecond)
				id, delay := fmt.Sprint(i), time.Duration(roll(20))*time.Second
				mu.Lock()
				due[id] = time.Now().Add(delay)
				mu.Unlock()
				_, err := orders.Enqueue(t.Context(), client, order{}, bide.ID(id), bide.In(delay), bide.MaxAttempts(bide.Unlimited), bide.DedupFor(time.Minute))
				assert.NoError(t, err)
			})
		}
		var stops []func() error
		for i := range 3 {
			consumer := bide.NewConsumer(client, bide.ConsumerConfig{
				Concurrency: 1 + 7*i,
				Lease:       10 * time.Second,
				Timeout:     15 * time.Second,
				Grace:       time.Second,
				Backoff:     bide.Exponential(time.Second, 10*time.Second),
				Logger:      quiet(),
			})
			orders.Handle(consumer, func(ctx context.Context, d *bide.Delivery[order]) error {
				mu.Lock()
				early := time.Until(due[d.ID])
				mu.Unlock()
				if early > 0 {
					t.Errorf("message %s was handled %s early", d.ID, early)
				}
				pass(time.Duration(roll(200)) * time.Millisecond)
				switch roll(12) {
				case 0:
					return errors.New("boom")
				case 1:
					return bide.Snooze(time.Second)
				case 2:
					return bide.RetryIn(time.Second, nil)
				case 3:
					return []error{}[d.Attempt]
				case 4:
					pass(12 * time.Second) // longer than a lease
				case 5:
					<-ctx.Done()
					return ctx.Err()
				}
				mu.Lock()
				handled[d.ID]++
				mu.Unlock()
				return nil
			})
			stops = append(stops, start(t, consumer))
		}
		producers.Wait()

		begun := time.Now()
		for {
			s, err := client.Stats(t.Context(), orders.Name())
			assert.NoError(t, err)
			if s.Delayed+s.Ready+s.Leased == 0 {
				assert.Equal(t, []int64{s.Total.Enqueued, s.Total.Acked, s.Total.Died, s.Dead}, []int64{n, n, 0, 0})
				break
			}
			assert.True(t, time.Since(begun) < time.Hour, s)
			pass(time.Second)
		}
		for _, stop := range stops {
			assert.NoError(t, stop())
		}
		twice := 0
		for id := range due {
			assert.True(t, handled[id] > 0, id)
			twice += handled[id] - 1
		}
		t.Logf("%d messages in %s, %d handled again", n, time.Since(begun), twice)
		assert.NoError(t, client.Close(t.Context()))
	})
}
