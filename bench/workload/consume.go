// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bidemq/bide/bench/result"
	"github.com/bidemq/bide/bench/system"
)

// patience is how long nothing may happen before what did not come is lost.
const patience = 15 * time.Second

// consumer is the consuming side while it runs.
type consumer struct {
	stop func()
	done chan error
}

// consume starts the handlers, which enter what they get into the ledger.
func (b *bench) consume(ctx context.Context, queues ...string) consumer {
	ctx, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() {
		switch s := b.system.(type) {
		case system.Local:
			done <- s.Consume(ctx, queues, handlers, func(body []byte) { b.ledger.Deliver(body, time.Now()) })
		case system.Foreign:
			done <- s.Receive(ctx, queues, handlers, b.ledger.Enter)
		default:
			done <- fmt.Errorf("%s is neither local nor foreign", b.spec.Name)
		}
	}()
	return consumer{stop, done}
}

// finish waits until n messages came and the system says that all are acknowledged, or until nothing
// more comes, and returns the instant. It then ends the handlers.
func (b *bench) finish(ctx context.Context, c consumer, n int) (time.Time, error) {
	defer c.stop()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	came, changed := 0, time.Now()
	var ended time.Time
	for {
		b.goroutines = max(b.goroutines, runtime.NumGoroutine())
		if now := b.ledger.Came(); now != came {
			came, changed = now, time.Now()
		}
		if came >= n {
			left, err := b.pending(ctx)
			if err != nil {
				return ended, err
			}
			if left == b.resting {
				ended = time.Now()
				break
			}
		}
		if time.Since(changed) > patience {
			ended = changed
			break
		}
		select {
		case <-ctx.Done():
			return ended, ctx.Err()
		case err := <-c.done:
			return ended, endedEarly(err)
		case <-tick.C:
		}
	}
	return ended, nil
}

// pending sums up what the queues have, asking for many of them at a time.
func (b *bench) pending(ctx context.Context) (int64, error) {
	const atOnce = 64
	var sum atomic.Int64
	var asking sync.WaitGroup
	var errs [atOnce]error
	for i := range min(atOnce, len(b.queues)) {
		asking.Go(func() {
			for j := i; j < len(b.queues) && errs[i] == nil; j += atOnce {
				var n int64
				n, errs[i] = b.system.Pending(ctx, b.queues[j])
				sum.Add(n)
			}
		})
	}
	asking.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		return 0, fmt.Errorf("count what is pending: %w", err)
	}
	return sum.Load(), nil
}

// endedEarly says why the handlers are gone, which may be for no reason.
func endedEarly(err error) error {
	if err == nil {
		return errors.New("consumer ended by itself")
	}
	return fmt.Errorf("consumer ended: %w", err)
}

// end stops the handlers and waits for them.
func (c consumer) end() error {
	c.stop()
	if err := <-c.done; err != nil {
		return fmt.Errorf("consume: %w", err)
	}
	return nil
}

// faults enters what the ledger says, which is complete once no handler runs.
func (b *bench) faults(metrics map[string]float64) {
	f := b.ledger.Faults()
	metrics[result.Messages] = float64(b.ledger.Sent())
	metrics[result.Lost] = float64(f.Lost)
	metrics[result.Doubled] = float64(f.Doubled + f.Foreign)
	metrics[result.Early] = float64(f.Early)
	if _, foreign := b.system.(system.Foreign); !foreign && b.goroutines > 0 {
		metrics[result.Goroutines] = float64(b.goroutines)
	}
	metrics[result.EarlyShare] = float64(f.Early) / float64(max(b.ledger.Sent(), 1))
}
