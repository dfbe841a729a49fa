// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"time"

	"github.com/bidemq/bide/bench/system"
)

// queues of W6.
const queues = 10

// idle is W6: consumers of ten queues that have nothing to do.
func idle(ctx context.Context, b *bench) (map[string]float64, error) {
	b.open(queues)
	b.queues = names(queues)
	if err := b.greet(ctx); err != nil {
		return nil, err
	}
	c := b.consume(ctx, b.queues...)
	defer c.stop()
	if err := b.calm(ctx, c); err != nil {
		return nil, err
	}
	before, err := b.usage(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.watch(ctx, seconds(b.IdleSeconds)); err != nil {
		return nil, err
	}
	metrics := map[string]float64{}
	if err := b.perSecond(ctx, before, metrics); err != nil {
		return nil, err
	}
	err = c.end()
	b.faults(metrics)
	return metrics, err
}

// greet enqueues one message into each queue.
func (b *bench) greet(ctx context.Context) error {
	f, foreign := b.system.(system.Foreign)
	if !foreign {
		return b.enqueue(ctx, production{producers: 1, batch: 1})
	}
	for _, q := range b.queues {
		index, _ := b.ledger.Reserve(1)
		_, err := f.Produce(ctx, system.Production{Queue: q, Producers: 1, Batch: 1, Size: b.body, First: index, Most: 1})
		if err != nil {
			return err
		}
	}
	return nil
}

// calm waits until the first message of each queue is handled, and a moment longer.
func (b *bench) calm(ctx context.Context, c consumer) error {
	const moment = 10 * time.Millisecond
	for began := time.Now(); b.ledger.Came() < queues && time.Since(began) < patience; {
		if err := c.watch(ctx, moment); err != nil {
			return err
		}
	}
	return c.watch(ctx, time.Second)
}

// watch waits, and fails if the consumers end meanwhile.
func (c consumer) watch(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case err := <-c.done:
		return endedEarly(err)
	case <-timer.C:
		return nil
	}
}
