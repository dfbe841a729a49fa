// SPDX-License-Identifier: Apache-2.0

package bide_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/storage"
)

func TestClaimByHand(t *testing.T) {
	bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) {
		ctx := t.Context()
		none, err := client.Claim(ctx, "orders", bide.ClaimOptions{})
		assert.NoError(t, err)
		assert.Equal(t, len(none), 0)

		put(t, client, "a")
		held, err := client.Claim(ctx, "orders", bide.ClaimOptions{Lease: time.Minute, By: "me"})
		assert.NoError(t, err)
		h := held[0]
		got, err := orders.Decode(h.Body)
		assert.NoError(t, err)
		assert.Equal(t, got, order{Number: "a"})
		assert.Equal(t, h.Record().Lease.By, "me")

		pass(50 * time.Second)
		assert.NoError(t, h.Extend(ctx, time.Minute))
		pass(50 * time.Second)
		assert.NoError(t, h.Ack(ctx))
		assert.ErrorIs(t, h.Ack(ctx), bide.ErrLeaseLost)
		assert.ErrorIs(t, h.Extend(ctx, time.Minute), bide.ErrLeaseLost)

		_, err = client.Claim(ctx, "orders", bide.ClaimOptions{Limit: -1})
		assert.ErrorIs(t, err, bide.ErrInvalid)
	})
}

func TestLateAckIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) { // R5
		put(t, client, "a")
		first, err := client.Claim(t.Context(), "orders", bide.ClaimOptions{})
		assert.NoError(t, err)
		pass(time.Minute)
		second, err := client.Claim(t.Context(), "orders", bide.ClaimOptions{})
		assert.NoError(t, err)
		assert.True(t, second[0].Token() > first[0].Token())
		assert.ErrorIs(t, first[0].Ack(t.Context()), bide.ErrLeaseLost)
		assert.NoError(t, second[0].Ack(t.Context()))
	})
}

func TestDeliveriesWaitForMessages(t *testing.T) {
	bubble(t, func(t *testing.T, engine *faulty, client *bide.Client) {
		begun := time.Now()
		for i := range 5 {
			put(t, client, fmt.Sprint(i), bide.In(time.Hour))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
		defer cancel()
		var got []string
		for h, err := range client.Deliveries(ctx, "orders", bide.ClaimOptions{Limit: 3}) {
			assert.NoError(t, err)
			assert.Equal(t, time.Since(begun), time.Hour)
			assert.NoError(t, h.Ack(ctx))
			got = append(got, h.ID)
			if len(got) == 4 {
				break
			}
		}
		assert.Equal(t, got, []string{"0", "1", "2", "3"})
		r, err := client.Get(ctx, "orders", "4") // claimed with the fourth and given back
		assert.NoError(t, err)
		assert.Equal(t, r.State, storage.Ready)
		assert.Equal(t, r.Attempts, 0)
		assert.NoError(t, client.Cancel(ctx, "orders", "4"))

		for _, err := range client.Deliveries(ctx, "orders", bide.ClaimOptions{}) {
			assert.ErrorIs(t, err, context.DeadlineExceeded)
		}
		assert.Equal(t, time.Since(begun), 2*time.Hour)
	})
}

func TestDeliveriesGiveBackWhenTheLoopDoesNotReturn(t *testing.T) {
	for name, end := range map[string]func(h bide.Held){
		"panic":  func(h bide.Held) { _ = []error{}[h.Attempt] },
		"goexit": func(bide.Held) { runtime.Goexit() },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, engine *faulty, client *bide.Client) {
				_, err := orders.EnqueueMany(t.Context(), client, make([]order, 30), nil)
				assert.NoError(t, err)
				done := make(chan struct{})
				go func() {
					defer close(done)
					defer func() { _ = recover() }()
					for h, err := range client.Deliveries(t.Context(), "orders", bide.ClaimOptions{Limit: 30}) {
						assert.NoError(t, err)
						end(h)
					}
				}()
				<-done
				s, err := client.Stats(t.Context(), "orders")
				assert.NoError(t, err)
				assert.Equal(t, []int64{s.Leased, s.Ready}, []int64{1, 29})
			})
		})
	}
}

func TestListings(t *testing.T) {
	bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) {
		ctx := t.Context()
		for i := range 450 {
			_, err := client.Enqueue(ctx, fmt.Sprintf("q%03d", i), bide.Message{})
			assert.NoError(t, err)
		}
		count := 0
		for name, err := range client.Queues(ctx) {
			assert.NoError(t, err)
			assert.Equal(t, name, fmt.Sprintf("q%03d", count))
			count++
		}
		assert.Equal(t, count, 450)

		_, err := orders.EnqueueMany(ctx, client, make([]order, 450), nil)
		assert.NoError(t, err)
		list := func(f storage.Filter) (n int) {
			for _, err := range client.Messages(ctx, "orders", f) {
				assert.NoError(t, err)
				n++
			}
			return n
		}
		assert.Equal(t, list(storage.Filter{State: storage.Ready}), 450)
		assert.Equal(t, list(storage.Filter{State: storage.Ready, Limit: 310}), 310)
		assert.Equal(t, list(storage.Filter{State: storage.Delayed}), 0)
		for _, err := range client.Messages(ctx, "orders", storage.Filter{}) {
			assert.ErrorIs(t, err, bide.ErrInvalid)
		}
		for _, err := range client.Messages(ctx, "orders", storage.Filter{State: storage.Ready}) {
			assert.NoError(t, err)
			break
		}

		b, err := client.Purge(ctx, "orders", storage.Filter{State: storage.Ready, Limit: 210})
		assert.NoError(t, err)
		assert.Equal(t, b.Count, 210)
		b, err = client.Purge(ctx, "orders", storage.Filter{State: storage.Ready})
		assert.NoError(t, err)
		assert.Equal(t, b.Count, 240)
	})
}

func TestBodiesThatDoNotDecodeAreListed(t *testing.T) {
	bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) {
		put(t, client, "a")
		_, err := client.Enqueue(t.Context(), "orders", bide.Message{ID: "b", Body: []byte("?")})
		assert.NoError(t, err)
		put(t, client, "c")
		var ids []string
		for m, err := range orders.Messages(t.Context(), client, storage.Ready) {
			assert.Equal(t, errors.Is(err, bide.ErrDecode), m.ID == "b")
			ids = append(ids, m.ID)
		}
		assert.Equal(t, ids, []string{"a", "b", "c"})
	})
}

func TestRedriveMakesTheDeadReadyAgain(t *testing.T) {
	bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) {
		ctx := t.Context()
		_, err := orders.EnqueueMany(ctx, client, make([]order, 300), nil)
		assert.NoError(t, err)
		held, err := client.Claim(ctx, "orders", bide.ClaimOptions{Limit: 300})
		assert.NoError(t, err)
		for _, h := range held {
			assert.NoError(t, h.Bury(ctx, errors.New("boom")))
		}
		put(t, client, held[0].ID) // a live namesake
		b, err := client.Redrive(ctx, "orders", storage.Filter{})
		assert.NoError(t, err)
		assert.Equal(t, []int{b.Count, b.Skipped}, []int{299, 1})
		_, err = client.Redrive(ctx, "orders", storage.Filter{ID: held[0].ID})
		assert.ErrorIs(t, err, bide.ErrConflict)
		_, err = client.Redrive(ctx, "orders", storage.Filter{ID: "nobody"})
		assert.ErrorIs(t, err, bide.ErrNotFound)
	})
}

func TestConfiguration(t *testing.T) {
	bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) {
		most := 3
		got, err := client.Configure(t.Context(), "orders", storage.ConfigEdit{MaxDeliveries: &most})
		assert.NoError(t, err)
		assert.Equal(t, got, storage.QueueConfig{MaxDeliveries: 3})
		assert.NoError(t, client.Pause(t.Context(), "orders"))
		s, err := client.Stats(t.Context(), "orders")
		assert.NoError(t, err)
		assert.Equal(t, s.Config, storage.QueueConfig{MaxDeliveries: 3, Paused: true})
		assert.NoError(t, client.Resume(t.Context(), "orders"))
		repaired, err := client.Repair(t.Context(), "orders", storage.Repair{DryRun: true})
		assert.NoError(t, err)
		assert.Equal(t, len(repaired.Fixes), 0)
	})
}

func TestHooksSeeWhatHappens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var seen []string
		note := func(format string, args ...any) {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, fmt.Sprintf(format, args...))
		}
		hooks := bide.Hooks{
			OnEnqueue: func(queue string, m *bide.Message, r bide.Result) {
				note("enqueue %s %s %s %v", queue, m.ID, r.Outcome, r.Err)
			},
			OnClaim: func(queue string, n int, took time.Duration, err error) {
				note("claim %s %d %s %v", queue, n, took, err)
			},
			OnStart:  func(ctx context.Context, d *bide.Delivery[[]byte]) { note("start %s %v", d.ID, ctx.Err()) },
			OnExtend: func(queue string, n, lost int, err error) { note("extend %s %d %d %v", queue, n, lost, err) },
			OnDone: func(d *bide.Delivery[[]byte], done bide.Done) {
				note("done %s %s %s %s %v", d.ID, done.Verdict, done.Took, d.Lag, done.Err)
			},
		}
		client := bide.NewClient(newFaulty(), bide.ClientConfig{Hooks: hooks})
		put(t, client, "a", bide.MaxAttempts(1))
		pass(time.Second)
		consumer := bide.NewConsumer(client, bide.ConsumerConfig{Hooks: hooks, Logger: quiet()})
		orders.Handle(consumer, func(context.Context, *bide.Delivery[order]) error {
			pass(11 * time.Second)
			return errBoom
		})
		stop := start(t, consumer)
		pass(12 * time.Second)
		assert.NoError(t, stop())
		assert.Equal(t, seen, []string{
			"enqueue orders a stored <nil>",
			"claim orders 1 0s <nil>",
			"start a <nil>",
			"extend orders 1 0 <nil>",
			"done a retry 11s 1s boom",
		})
	})
}
