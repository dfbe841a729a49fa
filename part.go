// SPDX-License-Identifier: Apache-2.0

package bide

import (
	"context"

	"github.com/bidemq/bide/storage"
)

// Part is the messages of certain keys of a queue, or of all but certain ones, for consumers: hot keys
// get handlers of their own, and the others do not wait behind them.
type Part[T any] struct {
	queue *Queue[T]
	scope storage.Scope
}

// Only is the part of the queue with the messages of the given keys, at most storage.MaxKeys; the key
// "" stands for messages without one. Without keys it is the whole queue.
func (q *Queue[T]) Only(keys ...string) *Part[T] {
	return &Part[T]{queue: q, scope: storage.Scope{Queue: q.name, Keys: keys}}
}

// Except is the part of the queue without the messages of the given keys, as in Only.
func (q *Queue[T]) Except(keys ...string) *Part[T] {
	return &Part[T]{queue: q, scope: storage.Scope{Queue: q.name, Except: keys}}
}

// Handle is [Queue.Handle] for the messages of the part. It panics too if there are too many keys.
func (p *Part[T]) Handle(c *Consumer, h func(ctx context.Context, d *Delivery[T]) error, wraps ...Middleware) {
	if h == nil {
		misuse("queue %q has a nil handler", p.queue.name)
	}
	c.HandlePart(p.scope, func(ctx context.Context, d *Delivery[[]byte]) error {
		body, err := decode(p.queue.codec, d.Body)
		if err != nil {
			return DeadLetter(err)
		}
		return h(ctx, typed(d, body))
	}, wraps...)
}

// HandleBatch is [Queue.HandleBatch] for the messages of the part.
func (p *Part[T]) HandleBatch(
	c *Consumer,
	h func(ctx context.Context, key string, ds []*Delivery[T]) error,
	config BatchConfig,
	wraps ...Middleware,
) {
	if h == nil {
		misuse("queue %q has a nil handler", p.queue.name)
	}
	c.HandleBatch(p.scope, func(ctx context.Context, key string, raw []*Delivery[[]byte]) error {
		ds := make([]*Delivery[T], 0, len(raw))
		for _, d := range raw {
			body, err := decode(p.queue.codec, d.Body)
			if err != nil {
				d.Decide(DeadLetter(err))
				continue
			}
			ds = append(ds, typed(d, body))
		}
		if len(ds) == 0 {
			return nil
		}
		return h(ctx, key, ds)
	}, config, wraps...)
}
