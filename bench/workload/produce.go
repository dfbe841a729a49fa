// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/bidemq/bide/bench/ledger"
	"github.com/bidemq/bide/bench/result"
	"github.com/bidemq/bide/bench/system"
)

const (
	queue     = "bench"
	batchSize = 100
	room      = 4_000_000 // messages of a run that ends by the clock, at most
	// fillers enqueue a backlog to systems without a call for many messages.
	fillers = 64
)

// produce is W1: producers enqueue as fast as they are answered. The system is then asked how many it
// has: what is missing is lost, what is too much is doubled.
func produce(producers, batch int) func(context.Context, *bench) (map[string]float64, error) {
	return func(ctx context.Context, b *bench) (map[string]float64, error) {
		b.ledger = ledger.New(room)
		if err := b.warm(ctx, producers); err != nil {
			return nil, err
		}
		before, err := b.usage(ctx)
		if err != nil {
			return nil, err
		}
		began := time.Now()
		if err := b.enqueue(ctx, producers, batch, began.Add(seconds(b.Seconds)), now); err != nil {
			return nil, err
		}
		took := time.Since(began)
		n := b.ledger.Sent()
		metrics := map[string]float64{result.Messages: float64(n), result.Rate: float64(n) / took.Seconds()}
		if err := b.perMessage(ctx, before, n, metrics); err != nil {
			return nil, err
		}
		stored, err := b.system.Pending(ctx, queue)
		if err != nil {
			return nil, fmt.Errorf("count what is stored: %w", err)
		}
		metrics[result.Lost] = float64(max(int64(n)-stored, 0))
		metrics[result.Doubled] = float64(max(stored-int64(n), 0))
		return metrics, nil
	}
}

// warm lets as many producers as will be needed enqueue one message into another queue, so that
// connections are open and scripts loaded when the time is taken.
func (b *bench) warm(ctx context.Context, producers int) error {
	return b.together(ctx, producers, "warm", func(p system.Producer) error {
		return p.Enqueue(ctx, system.Message{Body: ledger.Body(0, time.Time{})})
	})
}

// enqueue lets producers enqueue until an instant, or until the ledger is full; a zero instant is
// never. The due time of a message follows from its index.
func (b *bench) enqueue(ctx context.Context, producers, batch int, until time.Time, due func(index int) time.Time) error {
	return b.together(ctx, producers, queue, func(p system.Producer) error {
		ms := make([]system.Message, batch)
		for until.IsZero() || time.Now().Before(until) {
			first, ok := b.ledger.Reserve(batch)
			if !ok {
				return nil
			}
			for i := range ms {
				d := due(first + i)
				ms[i] = system.Message{Body: ledger.Body(first+i, d), Due: d}
			}
			var err error
			if batch == 1 {
				err = p.Enqueue(ctx, ms[0])
			} else {
				err = p.EnqueueBatch(ctx, ms)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// together runs something with as many producers, each in a goroutine. Their connections are opened
// before the first begins.
func (b *bench) together(ctx context.Context, producers int, queue string, do func(system.Producer) error) error {
	all := make([]system.Producer, producers)
	for i := range all {
		p, err := b.system.Producer(ctx, queue)
		if err != nil {
			return err
		}
		defer func() { _ = p.Close() }() // what it was answered is all that counts
		all[i] = p
	}
	errs := make([]error, producers)
	var wg sync.WaitGroup
	for i, p := range all {
		wg.Go(func() { errs[i] = do(p) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("enqueue: %w", err)
	}
	return nil
}

// fill enqueues n messages in the fastest way that the system has.
func (b *bench) fill(ctx context.Context, n int, due func(index int) time.Time) error {
	b.ledger = ledger.New(n)
	if b.spec.Batch {
		return b.enqueue(ctx, 16, batchSize, time.Time{}, due)
	}
	return b.enqueue(ctx, fillers, 1, time.Time{}, due)
}
