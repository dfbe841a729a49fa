// SPDX-License-Identifier: Apache-2.0

// Package bidetest runs handlers in tests: on an engine in memory, and in a testing/synctest
// bubble, where two days pass in microseconds and every instant is exact. [Run] makes a [Bubble],
// [Handle] and [HandleBatch] run handlers in it, [Bubble.Pass] lets time pass, and the Want methods look at what
// happened when.
//
// All instants are durations since the bubble began.
package bidetest

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/memstore"
	"github.com/bidemq/bide/storage"
)

// Bubble is a world with an engine and a clock of its own.
type Bubble struct {
	Client *bide.Client   // what the program under test is given
	Engine storage.Engine // below the client

	t     *testing.T
	begun time.Time

	mu       sync.Mutex
	enqueued []Enqueued
	settled  []Settled
}

// Run runs a test in a bubble; what the client and the consumers log goes to the test's log. When
// the test has ended, also by t.Fatal, its consumers are drained; what they leave behind fails it.
func Run(t *testing.T, test func(t *testing.T, b *Bubble)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &Bubble{Engine: memstore.New(memstore.Options{}), t: t, begun: time.Now()}
		b.Client = bide.NewClient(b.Engine, bide.ClientConfig{
			Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
			Hooks:  bide.Hooks{OnEnqueue: b.noteEnqueue},
		})
		t.Cleanup(func() {
			if err := b.Client.Close(context.WithoutCancel(t.Context())); err != nil {
				t.Errorf("closing the client: %v", err)
			}
			if err := b.Engine.Close(); err != nil {
				t.Errorf("closing the engine: %v", err)
			}
		})
		test(t, b)
	})
}

// Handle runs a handler for a queue until the test ends, on a consumer of its own whose backoff is
// exact: 5 s, and twice as long each time.
func Handle[T any](b *Bubble, queue *bide.Queue[T], h func(ctx context.Context, d *bide.Delivery[T]) error, wraps ...bide.Middleware) {
	c := b.NewConsumer(bide.ConsumerConfig{})
	queue.Handle(c, h, wraps...)
	b.Start(c)
}

// HandleBatch is [Handle] for batches of messages, see [bide.Queue.HandleBatch].
func HandleBatch[T any](
	b *Bubble,
	queue *bide.Queue[T],
	h func(ctx context.Context, key string, ds []*bide.Delivery[T]) error,
	config bide.BatchConfig,
	wraps ...bide.Middleware,
) {
	c := b.NewConsumer(bide.ConsumerConfig{})
	queue.HandleBatch(c, h, config, wraps...)
	b.Start(c)
}

// NewConsumer returns a consumer without handlers whose deliveries the bubble sees. A nil backoff
// is the exact one of [Handle].
func (b *Bubble) NewConsumer(config bide.ConsumerConfig) *bide.Consumer {
	if config.Backoff == nil {
		config.Backoff = func(attempt int) time.Duration { return 5 * time.Second << min(attempt-1, 12) }
	}
	theirs := config.Hooks.OnDone
	config.Hooks.OnDone = func(d *bide.Delivery[[]byte], done bide.Done) {
		b.noteDone(d, done)
		if theirs != nil {
			theirs(d, done)
		}
	}
	return bide.NewConsumer(b.Client, config)
}

// Start runs a consumer until the test ends or stop is called; stop drains it and returns what Run
// returned.
func (b *Bubble) Start(c *bide.Consumer) (stop func() error) {
	ctx, cancel := context.WithCancel(b.t.Context())
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		err = c.Run(ctx)
	}()
	b.t.Cleanup(func() {
		cancel()
		<-done
		if err != nil {
			b.t.Errorf("consumer: %v", err)
		}
	})
	return func() error {
		cancel()
		<-done
		return err
	}
}

// Pass lets time pass and returns when everything that happens until then, and at that instant, has
// happened.
func (b *Bubble) Pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// Now is how long ago the bubble began.
func (b *Bubble) Now() time.Duration { return time.Since(b.begun) }
