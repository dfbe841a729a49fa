// SPDX-License-Identifier: Apache-2.0

package bide

import (
	"cmp"
	"context"
	"errors"
	"time"
)

// ExclusiveConfig of an Exclusive. The zero value is usable.
type ExclusiveConfig struct {
	// TTL of the lock, as in [LockConfig]; 0 is 30 s.
	TTL time.Duration
	// Snooze is when a message comes again that met a conflict; 0 is 1 s.
	Snooze time.Duration
}

// Exclusive is middleware under which a handler runs only while it holds the lock that key names for
// its message; "" needs none. A message whose lock somebody else holds is snoozed: it goes back to
// the queue, no attempt is spent, and the consumer stays free for others. (Each time counts as a
// delivery where the queue bounds those.)
//
// The handler's context ends with cause ErrLockLost when the lock is lost; unless the handler
// decides otherwise, its message is snoozed then too. [LockOf] gives the handler its lock, whose
// token protects what it writes to. An engine that cannot be asked for the lock is a conflict.
//
// It panics if the client or key is nil, or the configuration is out of its bounds.
func Exclusive(client *Client, key func(d *Delivery[[]byte]) string, config ExclusiveConfig) Middleware {
	if client == nil || key == nil {
		misuse("Exclusive without a client or a key")
	}
	if config.TTL != 0 && config.TTL < leastTTL || config.Snooze < 0 {
		misuse("Exclusive: TTL or Snooze is out of its bounds")
	}
	config.Snooze = cmp.Or(config.Snooze, time.Second)
	return func(next Handler) Handler {
		return func(ctx context.Context, d *Delivery[[]byte]) error {
			name := key(d)
			if name == "" {
				return next(ctx, d)
			}
			return exclusive(ctx, d, client, name, next, config)
		}
	}
}

func exclusive(ctx context.Context, d *Delivery[[]byte], client *Client, name string, next Handler, config ExclusiveConfig) (err error) {
	l, err := client.TryLock(ctx, name, LockConfig{TTL: config.TTL})
	switch {
	case errors.Is(err, ErrInvalid):
		return DeadLetter(err)
	case errors.Is(err, ErrLocked), errors.Is(err, ErrUnavailable):
		return errors.Join(Snooze(config.Snooze), err)
	case err != nil:
		return err
	}
	defer func() {
		lost := errors.Is(context.Cause(l.Context()), ErrLockLost)
		if lost && err != nil && interrupted(err) {
			err = errors.Join(Snooze(config.Snooze), err)
		}
		if bad := l.Unlock(ctx); bad != nil && !lost {
			client.log.WarnContext(ctx, "a lock was not given up", "queue", d.Queue, "id", d.ID, "lock", name, "error", bad)
		}
	}()
	return next(l.Context(), d)
}
