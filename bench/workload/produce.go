// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bidemq/bide/bench/ledger"
	"github.com/bidemq/bide/bench/result"
	"github.com/bidemq/bide/bench/system"
)

const (
	queue     = "bench"
	batchSize = 100
	// fillers enqueue a backlog to systems without a call for many messages.
	fillers = 64
	// roomBytes bounds the messages of a run that ends by the clock, and roomMost their number.
	roomBytes = 1 << 30
	roomMost  = 4_000_000
	// backlogBytes bounds a backlog.
	backlogBytes = 256 << 20
)

// room for a run that ends by the clock.
func (b *bench) room() int { return min(roomMost, roomBytes/b.body) }

// produce is W1: producers enqueue as fast as they are answered. The system is then asked how many it
// has: what is missing is lost, what is too much is doubled.
func produce(producers, batch int) func(context.Context, *bench) (map[string]float64, error) {
	return func(ctx context.Context, b *bench) (map[string]float64, error) {
		b.open(b.room())
		if err := b.warm(ctx, producers); err != nil {
			return nil, err
		}
		enqueue, err := b.prepare(ctx, production{producers: producers, batch: batch, lasts: seconds(b.Seconds)})
		if err != nil {
			return nil, err
		}
		before, err := b.usage(ctx)
		if err != nil {
			return nil, err
		}
		began := time.Now()
		if err := enqueue(ctx); err != nil {
			return nil, err
		}
		took := time.Since(began)
		n := b.ledger.Sent()
		metrics := map[string]float64{result.Messages: float64(n), result.Rate: float64(n) / took.Seconds()}
		if err := b.perMessage(ctx, before, n, metrics); err != nil {
			return nil, err
		}
		stored, err := b.pending(ctx)
		if err != nil {
			return nil, err
		}
		metrics[result.Lost] = float64(max(int64(n)-stored, 0))
		metrics[result.Doubled] = float64(max(stored-int64(n), 0))
		return metrics, nil
	}
}

// warm lets as many producers as will be needed enqueue one message into another queue, so that
// connections are open and scripts loaded when the time is taken.
func (b *bench) warm(ctx context.Context, producers int) error {
	const other = "warm"
	if f, ok := b.system.(system.Foreign); ok {
		_, err := f.Produce(ctx, system.Production{Queue: other, Producers: producers, Batch: 1, Size: b.body, Most: producers})
		return err
	}
	return b.together(ctx, producers, []string{other}, func(ctx context.Context, ps []system.Producer) error {
		return ps[0].Enqueue(ctx, system.Message{Body: ledger.Body(b.body, 0, time.Time{})})
	})
}

// production of messages by producers, each of which waits for its answers.
type production struct {
	producers int
	batch     int
	lasts     time.Duration // 0 is until nothing else is left
	most      int           // messages, 0 is until the ledger is full
	due       system.Due
}

// enqueue lets producers enqueue.
func (b *bench) enqueue(ctx context.Context, p production) error {
	do, err := b.prepare(ctx, p)
	if err != nil {
		return err
	}
	return do(ctx)
}

// prepare opens what producers need, and returns what lets them enqueue, once. The due time of a
// message follows from its index.
func (b *bench) prepare(ctx context.Context, p production) (func(context.Context) error, error) {
	if f, ok := b.system.(system.Foreign); ok {
		return func(ctx context.Context) error { return b.order(ctx, f, p) }, nil
	}
	var taken atomic.Int64
	return b.crew(ctx, p.producers, b.queues, func(ctx context.Context, queues []system.Producer) error {
		until := time.Now().Add(p.lasts)
		ms := make([]system.Message, p.batch)
		for turn := 0; p.lasts == 0 || time.Now().Before(until); turn++ {
			if p.most > 0 && taken.Add(int64(p.batch)) > int64(p.most) {
				return nil
			}
			first, ok := b.ledger.Reserve(p.batch)
			if !ok {
				return nil
			}
			for i := range ms {
				due := p.due.Of(first + i)
				ms[i] = system.Message{Index: first + i, Body: b.ledger.Body(first+i, due), Due: due}
			}
			q := queues[turn%len(queues)]
			var err error
			if p.batch == 1 {
				err = q.Enqueue(ctx, ms[0])
			} else {
				err = q.EnqueueBatch(ctx, ms)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// order is enqueue where somebody else does it.
func (b *bench) order(ctx context.Context, f system.Foreign, p production) error {
	free := b.ledger.Free()
	if p.most > 0 {
		free = min(free, p.most)
	}
	first, _ := b.ledger.Reserve(free)
	sent, err := f.Produce(ctx, system.Production{
		Queue: b.queues[0], Producers: p.producers, Batch: p.batch, Size: b.body, First: first, Most: free, For: p.lasts, Due: p.due,
	})
	if err != nil {
		return fmt.Errorf("enqueue: %w", err)
	}
	b.ledger.Return(free - sent)
	return nil
}

// together runs something with as many producers, each in a goroutine.
func (b *bench) together(ctx context.Context, producers int, queues []string, do func(context.Context, []system.Producer) error) error {
	run, err := b.crew(ctx, producers, queues, do)
	if err != nil {
		return err
	}
	return run(ctx)
}

// crew opens as many producers, and returns what runs something with each in a goroutine. The queues
// are shared out among them; where there are fewer queues, several have the same one.
func (b *bench) crew(ctx context.Context, producers int, queues []string, do func(context.Context, []system.Producer) error) (func(context.Context) error, error) {
	local, ok := b.system.(system.Local)
	if !ok {
		return nil, fmt.Errorf("%s is neither local nor foreign", b.spec.Name)
	}
	all := make([][]system.Producer, producers)
	for i := range all {
		for j := i % len(queues); j < len(queues); j += producers {
			p, err := local.Producer(ctx, queues[j])
			if err != nil {
				return nil, err // what was opened ends with the process
			}
			all[i] = append(all[i], p)
		}
	}
	return func(ctx context.Context) error {
		errs := make([]error, producers)
		var wg sync.WaitGroup
		for i, ps := range all {
			wg.Go(func() { errs[i] = do(ctx, ps) })
		}
		wg.Wait()
		for _, p := range slices.Concat(all...) {
			_ = p.Close() // what it was answered is all that counts
		}
		if err := errors.Join(errs...); err != nil {
			return fmt.Errorf("enqueue: %w", err)
		}
		return nil
	}, nil
}

// fill enqueues n messages in the fastest way that the system has.
func (b *bench) fill(ctx context.Context, n int, due system.Due) error {
	b.open(n)
	if b.spec.Batch {
		return b.enqueue(ctx, production{producers: 16, batch: batchSize, due: due})
	}
	return b.enqueue(ctx, production{producers: fillers, batch: 1, due: due})
}
