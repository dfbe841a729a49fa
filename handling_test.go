// SPDX-License-Identifier: Apache-2.0

package bide_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/internal/assert"
)

type ownKey struct{}

// looks are the ways to look at a context. The first asks for nothing but whether it has ended.
var looks = map[string]func(ctx context.Context){
	"not":      func(context.Context) {},
	"Err":      func(ctx context.Context) { _ = ctx.Err() },
	"Done":     func(ctx context.Context) { ctx.Done() },
	"Value":    func(ctx context.Context) { ctx.Value(ownKey{}) },
	"Deadline": func(ctx context.Context) { ctx.Deadline() },
}

// The context of a handler ends with the handler, whenever somebody looks at it.
func TestContextEndsWithItsHandler(t *testing.T) {
	for name, look := range looks {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) {
				put(t, client, "a")
				var kept context.Context
				consumer := bide.NewConsumer(client, bide.ConsumerConfig{})
				orders.Handle(consumer, func(ctx context.Context, _ *bide.Delivery[order]) error {
					look(ctx)
					assert.NoError(t, ctx.Err())
					assert.NoError(t, context.Cause(ctx))
					kept = ctx
					return nil
				})
				ctx := context.WithValue(t.Context(), ownKey{}, "mine")
				done := make(chan error, 1)
				ctx, stop := context.WithCancel(ctx)
				go func() { done <- consumer.Run(ctx) }()
				synctest.Wait()
				stop()
				assert.NoError(t, <-done)
				assert.ErrorIs(t, kept.Err(), context.Canceled)
				assert.ErrorIs(t, context.Cause(kept), context.Canceled)
				<-kept.Done()
				assert.Equal(t, kept.Value(ownKey{}), any("mine"))
				_, has := kept.Deadline()
				assert.True(t, !has)
			})
		})
	}
}

// What a handler makes of its context ends with it, and has its cause.
func TestContextsOfAHandlersContextEndWithIt(t *testing.T) {
	for name, look := range looks {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, engine *faulty, client *bide.Client) {
				put(t, client, "a")
				engine.fails(extend, errors.New("boom"))
				causes := make(chan error, 3)
				consumer := bide.NewConsumer(client, bide.ConsumerConfig{Lease: 10 * time.Second, Logger: quiet()})
				orders.Handle(consumer, func(ctx context.Context, d *bide.Delivery[order]) error {
					if d.Attempt > 1 {
						return nil
					}
					look(ctx)
					child, cancel := context.WithTimeout(ctx, time.Hour)
					defer cancel()
					defer context.AfterFunc(child, func() { causes <- context.Cause(child) })()
					<-child.Done()
					causes <- context.Cause(ctx)
					return ctx.Err()
				})
				stop := start(t, consumer)
				pass(30 * time.Second)
				engine.heals(extend)
				assert.NoError(t, stop())
				assert.ErrorIs(t, <-causes, bide.ErrLeaseLost)
				assert.ErrorIs(t, <-causes, bide.ErrLeaseLost)
			})
		})
	}
}
