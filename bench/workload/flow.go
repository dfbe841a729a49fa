// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"time"

	"github.com/bidemq/bide/bench/result"
	"github.com/bidemq/bide/bench/system"
)

// drain is W2: a full queue is emptied, from the start of the consumers to the last acknowledgment.
func drain(ctx context.Context, b *bench) (map[string]float64, error) {
	if err := b.fill(ctx, b.backlog(), system.Due{}); err != nil {
		return nil, err
	}
	return b.measure(ctx, func(context.Context) error { return nil })
}

// flow is W3: producers and consumers at once, from the first enqueue to the last acknowledgment.
func flow(producers int) func(context.Context, *bench) (map[string]float64, error) {
	return func(ctx context.Context, b *bench) (map[string]float64, error) {
		b.open(b.room())
		if err := b.warm(ctx, producers); err != nil {
			return nil, err
		}
		enqueue, err := b.prepare(ctx, production{producers: producers, batch: 1, lasts: seconds(b.Seconds)})
		if err != nil {
			return nil, err
		}
		return b.measure(ctx, enqueue)
	}
}

// measure takes the time of consuming while something is enqueued, until all of it is acknowledged.
func (b *bench) measure(ctx context.Context, enqueue func(context.Context) error) (map[string]float64, error) {
	before, err := b.usage(ctx)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	c := b.consume(ctx, b.queues...)
	err = enqueue(ctx)
	if err != nil {
		c.stop()
		return nil, err
	}
	ended, err := b.finish(ctx, c, b.ledger.Sent())
	if err != nil {
		return nil, err
	}
	metrics := map[string]float64{}
	if err := b.perMessage(ctx, before, b.ledger.Sent(), metrics); err != nil {
		return nil, err
	}
	err = c.end()
	b.faults(metrics)
	metrics[result.Rate] = float64(b.ledger.Came()) / ended.Sub(began).Seconds()
	return metrics, err
}
