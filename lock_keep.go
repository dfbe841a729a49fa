// SPDX-License-Identifier: Apache-2.0

package bide

import (
	"context"
	"errors"
	"time"
)

// keep renews the lock until ctx ends or the lock is lost. As with leases, it is renewed when a
// third of its TTL has passed, and again every twelfth until that works; it counts as lost when an
// eighth is left, by the monotonic clock from the instant that the call was sent, which is never
// later than the engine's. The timer for that runs beside the calls: none of them can hold it up.
func (l *Lock) keep(ctx context.Context, renewed time.Time) {
	defer close(l.done)
	limit := renewed.Add(l.ttl - l.ttl/8)
	lapse := time.AfterFunc(time.Until(limit), l.lose)
	defer lapse.Stop()
	next := renewed.Add(l.ttl / 3)
	for sleep(ctx, time.Until(next)) == nil {
		sent := time.Now()
		err := bounded(ctx, min(l.ttl/6, callPatience), func(ctx context.Context) error {
			_, err := l.client.engine.Renew(ctx, time.Time{}, l.receipt, l.ttl)
			return err
		})
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, ErrLockLost), errors.Is(err, ErrClosed):
			l.lose()
			return
		case err != nil:
			next = time.Now().Add(l.ttl / 12)
			l.client.log.WarnContext(ctx, "a lock was not renewed, trying again", "lock", l.receipt.Name, "error", err)
		case lapse.Stop():
			next = sent.Add(l.ttl / 3)
			lapse.Reset(time.Until(sent.Add(l.ttl - l.ttl/8)))
		}
	}
}

// lose tells the holder that somebody else may have the lock soon.
func (l *Lock) lose() {
	l.client.log.WarnContext(l.ctx, "lock lost", "lock", l.receipt.Name)
	l.cancel(ErrLockLost)
	l.stop()
}
