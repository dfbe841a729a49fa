// SPDX-License-Identifier: Apache-2.0

package bide_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/storage"
)

func byKey(d *bide.Delivery[[]byte]) string { return d.Key }

// A conflict costs no attempt and no handler: messages of one key run one at a time, and those of
// another key meanwhile.
func TestExclusiveSnoozesConflicts(t *testing.T) {
	bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) {
		consumer := bide.NewConsumer(client, bide.ConsumerConfig{Concurrency: 4})
		var inside, done atomic.Int64
		var last int64
		finished := make(chan string, 6)
		orders.Handle(consumer, func(ctx context.Context, d *bide.Delivery[order]) error {
			assert.Equal(t, d.Attempt, 1)
			if d.Key == "free" {
				finished <- "free"
				return nil
			}
			assert.Equal(t, inside.Add(1), 1)
			l := bide.LockOf(ctx)
			assert.True(t, l.Token() > last, "a token that does not grow")
			last = l.Token()
			pass(10 * time.Second)
			inside.Add(-1)
			done.Add(1)
			finished <- d.Key
			return nil
		}, bide.Exclusive(client, byKey, bide.ExclusiveConfig{Snooze: 3 * time.Second}))
		for _, id := range []string{"1", "2", "3", "4", "5"} {
			put(t, client, id, bide.Key("one"))
		}
		stop := start(t, consumer)
		pass(time.Second)
		put(t, client, "other", bide.Key("free"))
		assert.Equal(t, <-finished, "free")
		for range 5 {
			assert.Equal(t, <-finished, "one")
		}
		pass(time.Second)
		assert.NoError(t, stop())
		got := total(t, client)
		assert.Equal(t, []int64{got.Acked, got.Retried, got.Died}, []int64{6, 0, 0})
		assert.True(t, got.Released >= 4, got.Released)
	})
}

// A handler whose lock is lost hears of it, and its message comes again with no attempt spent.
func TestExclusiveEndsTheHandlerOfALostLock(t *testing.T) {
	bubble(t, func(t *testing.T, engine *faulty, client *bide.Client) {
		consumer := bide.NewConsumer(client, bide.ConsumerConfig{})
		causes := make(chan error, 1)
		var runs atomic.Int64
		consumer.Handle("orders", func(ctx context.Context, d *bide.Delivery[[]byte]) error {
			assert.Equal(t, d.Attempt, 1)
			if runs.Add(1) > 1 {
				causes <- nil
				return nil
			}
			engine.fails(renew, storage.ErrUnavailable)
			<-ctx.Done()
			engine.heals(renew)
			causes <- context.Cause(ctx)
			return ctx.Err()
		}, bide.Exclusive(client, func(*bide.Delivery[[]byte]) string { return "lock" }, bide.ExclusiveConfig{TTL: 9 * time.Second}))
		put(t, client, "1")
		stop := start(t, consumer)
		assert.ErrorIs(t, <-causes, bide.ErrLockLost)
		assert.NoError(t, <-causes)
		pass(time.Second)
		assert.NoError(t, stop())
		got := total(t, client)
		assert.Equal(t, []int64{got.Acked, got.Released, got.Retried}, []int64{1, 1, 0})
	})
}

// What the handler decides stands, the lock is given up after a panic too, and no key needs no lock.
func TestExclusiveLeavesOutcomesAlone(t *testing.T) {
	bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) {
		consumer := bide.NewConsumer(client, bide.ConsumerConfig{Backoff: bide.Exponential(time.Hour, time.Hour)})
		consumer.Handle("orders", func(ctx context.Context, d *bide.Delivery[[]byte]) error {
			switch d.ID {
			case "free":
				assert.True(t, bide.LockOf(ctx) == nil)
			case "panics":
				return []error{}[d.Attempt] // panics
			case "fails":
				return errors.New("on purpose")
			}
			return nil
		}, bide.Exclusive(client, byKey, bide.ExclusiveConfig{}))
		put(t, client, "free")
		put(t, client, "panics", bide.Key("a"))
		put(t, client, "fails", bide.Key("b"))
		put(t, client, "waits", bide.Key("a"))
		stop := start(t, consumer)
		pass(10 * time.Second)
		assert.NoError(t, stop())
		got := total(t, client)
		assert.Equal(t, []int64{got.Acked, got.Retried}, []int64{2, 2})
		for _, name := range []string{"a", "b"} {
			l, err := client.TryLock(t.Context(), name, bide.LockConfig{})
			assert.NoError(t, err)
			assert.NoError(t, l.Unlock(t.Context()))
		}
	})
}

func TestExclusiveMisuse(t *testing.T) {
	bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) {
		for _, misuse := range []func(){
			func() { bide.Exclusive(nil, byKey, bide.ExclusiveConfig{}) },
			func() { bide.Exclusive(client, nil, bide.ExclusiveConfig{}) },
			func() { bide.Exclusive(client, byKey, bide.ExclusiveConfig{Snooze: -1}) },
		} {
			func() {
				defer func() { assert.True(t, recover() != nil, "no panic") }()
				misuse()
			}()
		}
	})
}
