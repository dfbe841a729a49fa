// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"time"

	"github.com/bidemq/bide/bench/ledger"
	"github.com/bidemq/bide/bench/result"
	"github.com/bidemq/bide/bench/stats"
)

const (
	gap       = 500 * time.Microsecond // between the due times of W4
	burstSize = 10_000                 // messages of W4b
	lead      = 2 * time.Second        // between the first enqueue and the first due time
)

// spread is W4: messages that are due one after the other, and how late each of them came.
func spread(ctx context.Context, b *bench) (map[string]float64, error) {
	n := int(seconds(b.LagSeconds) / gap)
	lags, metrics, err := b.delayed(ctx, n-n%batchSize, gap)
	if err != nil || len(lags) == 0 {
		return metrics, err
	}
	metrics[result.LagP50] = millis(stats.Percentile(lags, 50))
	metrics[result.LagP99] = millis(stats.Percentile(lags, 99))
	metrics[result.LagMax] = millis(lags[len(lags)-1])
	metrics[result.LagMin] = millis(lags[0])
	return metrics, nil
}

// burst is W4b: many messages that are due at one instant.
func burst(ctx context.Context, b *bench) (map[string]float64, error) {
	lags, metrics, err := b.delayed(ctx, burstSize, 0)
	if err != nil || len(lags) == 0 {
		return metrics, err
	}
	metrics[result.BurstFirst] = millis(lags[0])
	metrics[result.BurstLast] = millis(lags[len(lags)-1])
	return metrics, nil
}

// delayed enqueues n messages in the order of their due times, with consumers there, and returns
// their lags.
func (b *bench) delayed(ctx context.Context, n int, apart time.Duration) ([]time.Duration, map[string]float64, error) {
	if err := b.warm(ctx, fillers); err != nil {
		return nil, nil, err
	}
	before, err := b.usage(ctx)
	if err != nil {
		return nil, nil, err
	}
	first := time.Now().Truncate(time.Millisecond).Add(lead)
	b.ledger = ledger.New(n)
	c := b.consume(ctx, queue)
	due := func(i int) time.Time { return first.Add(time.Duration(i) * apart) }
	producers, batch := fillers, 1
	if b.spec.Batch {
		producers, batch = 16, batchSize
	}
	if err := b.enqueue(ctx, producers, batch, time.Time{}, due); err != nil {
		c.stop()
		return nil, nil, err
	}
	if _, err := b.finish(ctx, c, n); err != nil {
		return nil, nil, err
	}
	metrics := map[string]float64{}
	if err := b.perMessage(ctx, before, n, metrics); err != nil {
		return nil, nil, err
	}
	err = c.end()
	b.faults(metrics)
	return b.ledger.Lags(), metrics, err
}
