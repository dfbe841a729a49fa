// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/bidemq/bide/bench/result"
	"github.com/bidemq/bide/bench/system"
)

// ID of the message with an index, where messages are canceled by it.
func ID(index int) string { return "m" + strconv.Itoa(index) }

// waiting measures what a message costs while many others wait for their time in the same queue: one
// by one among them, through it, and out of it by its id.
func waiting(ctx context.Context, b *bench) (map[string]float64, error) {
	b.open(b.waiting + b.room())
	if err := b.warm(ctx, many); err != nil {
		return nil, err
	}
	metrics := map[string]float64{}
	due := system.Due{First: time.Now().Add(far), Apart: time.Millisecond}
	if err := b.crowd(ctx, due, metrics); err != nil {
		return nil, fmt.Errorf("fill: %w", err)
	}
	due.Over = b.waiting
	for _, p := range []struct {
		name string
		do   func(context.Context, system.Due, map[string]float64) error
	}{{result.Enqueue, b.among}, {result.Claim, b.through}, {result.Cancel, b.out}} {
		phase := map[string]float64{}
		if err := p.do(ctx, due, phase); err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
		for name, v := range phase {
			switch name {
			case result.Lost, result.Doubled, result.Early:
				metrics[name] += v
			default:
				metrics[p.name+name] = v
			}
		}
	}
	return metrics, nil
}

// many producers and cancelers there are.
const many = 512

// crowd lets the many wait, and enters what memory each takes.
func (b *bench) crowd(ctx context.Context, due system.Due, metrics map[string]float64) error {
	before, err := b.host.Memory(ctx)
	if err != nil {
		return err
	}
	if err := b.enqueue(ctx, production{producers: 16, batch: batchSize, most: b.waiting, due: due}); err != nil {
		return err
	}
	after, err := b.host.Memory(ctx)
	if err != nil {
		return err
	}
	metrics[result.Messages] = float64(b.ledger.Sent())
	if after > before {
		metrics[result.Memory] = float64(after-before) / float64(b.waiting)
	}
	return nil
}

// among enqueues messages whose time comes among that of the others.
func (b *bench) among(ctx context.Context, due system.Due, metrics map[string]float64) error {
	do, err := b.prepare(ctx, production{producers: many, batch: 1, lasts: seconds(b.Seconds), due: due})
	if err != nil {
		return err
	}
	sent := b.ledger.Sent()
	return b.timed(ctx, metrics, func(ctx context.Context) (int, error) {
		err := do(ctx)
		return b.ledger.Sent() - sent, err
	})
}

// through enqueues messages that are due, and then lets consumers have them.
func (b *bench) through(ctx context.Context, _ system.Due, metrics map[string]float64) error {
	b.resting = int64(b.ledger.Sent())
	n := b.backlog()
	if err := b.enqueue(ctx, production{producers: 16, batch: batchSize, most: n}); err != nil {
		return err
	}
	var c consumer
	err := b.timed(ctx, metrics, func(ctx context.Context) (int, error) {
		c = b.consume(ctx, b.queues...)
		_, err := b.finish(ctx, c, n)
		return n, err
	})
	if err != nil {
		return err
	}
	err = c.end()
	f := b.ledger.Faults()
	metrics[result.Lost] = float64(n - b.ledger.Came())
	metrics[result.Doubled] = float64(f.Doubled + f.Foreign)
	metrics[result.Early] = float64(f.Early)
	return err
}

// out cancels some of those that wait, here and there.
func (b *bench) out(ctx context.Context, due system.Due, metrics map[string]float64) error {
	canceler, ok := b.system.(system.Canceler)
	if !ok {
		return fmt.Errorf("%s cannot cancel", b.spec.Name)
	}
	n := int64(min(b.waiting, b.backlog()))
	var next atomic.Int64
	return b.timed(ctx, metrics, func(ctx context.Context) (int, error) {
		return int(n), b.together(ctx, many, b.queues, func(ctx context.Context, _ []system.Producer) error {
			for i := next.Add(1) - 1; i < n; i = next.Add(1) - 1 {
				if err := canceler.Cancel(ctx, b.queues[0], ID(due.Scattered(int(i)))); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// timed enters the rate and the costs of what is done to as many messages as it says.
func (b *bench) timed(ctx context.Context, metrics map[string]float64, do func(context.Context) (int, error)) error {
	before, err := b.usage(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	n, err := do(ctx)
	if err != nil {
		return err
	}
	metrics[result.Rate] = float64(n) / time.Since(began).Seconds()
	return b.perMessage(ctx, before, n, metrics)
}
