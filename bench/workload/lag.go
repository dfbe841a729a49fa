// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"time"

	"github.com/bidemq/bide/bench/result"
	"github.com/bidemq/bide/bench/stats"
	"github.com/bidemq/bide/bench/system"
)

const (
	gap       = 500 * time.Microsecond // between the due times of W4
	slowGap   = 5 * gap                // for systems that drain less than that
	burstSize = 10_000                 // messages of W4b
	lead      = 2 * time.Second        // between the first enqueue and the first due time
)

// spread is W4: messages that are due one after the other, and how late each of them came.
func spread(ctx context.Context, b *bench) (map[string]float64, error) {
	apart := gap
	if b.spec.Slow {
		apart = slowGap
	}
	n := int(seconds(b.LagSeconds) / apart)
	lags, metrics, err := b.delayed(ctx, n-n%batchSize, apart)
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
	b.open(n)
	c := b.consume(ctx, b.queues...)
	p := production{producers: fillers, batch: 1, due: system.Due{First: first, Apart: apart}}
	if b.spec.Batch {
		p.producers, p.batch = 16, batchSize
	}
	if err := b.enqueue(ctx, p); err != nil {
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
