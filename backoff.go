// SPDX-License-Identifier: Apache-2.0

package bide

import (
	"context"
	"math/rand/v2"
	"time"
)

// Backoff says how long a message waits after its nth attempt failed, n from 1 on. Values below
// zero mean zero, those over fifty years mean fifty years.
type Backoff func(attempt int) time.Duration

// Exponential returns a Backoff that waits about first after the first attempt and doubles that
// with each, up to most, or to fifty years. Every wait is spread by a fifth up and down, so that
// what failed together does not come back together.
func Exponential(first, most time.Duration) Backoff {
	most = clamp(most)
	return func(attempt int) time.Duration {
		d := grow(first, most, attempt)
		return d - d/5 + rand.N(2*(d/5)+1)
	}
}

// grow doubles first attempt-1 times without passing most.
func grow(first, most time.Duration, attempt int) time.Duration {
	d := max(first, 0)
	for i := 1; i < attempt && d > 0 && d < most; i++ {
		if d > most/2 {
			return most
		}
		d *= 2
	}
	return min(d, most)
}

// Defaults of waiting.
const (
	firstRetry = 5 * time.Second
	mostRetry  = 6 * time.Hour

	firstRepeat = 20 * time.Millisecond // of a call that the engine could not take
	mostRepeat  = 5 * time.Second
)

func defaultBackoff() Backoff { return Exponential(firstRetry, mostRetry) }

// repeatAfter spreads over the whole of the grown wait: many processes meet the same outage.
func repeatAfter(failures int) time.Duration {
	d := grow(firstRepeat, mostRepeat, failures)
	return d/2 + rand.N(d/2+1)
}

// sleep waits for d or the end of ctx, whose error it returns.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
