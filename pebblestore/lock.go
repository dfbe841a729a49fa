// SPDX-License-Identifier: Apache-2.0

package pebblestore

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/bidemq/bide/storage"
)

// Acquire implements [storage.Locker]. R16
func (s *Store) Acquire(ctx context.Context, now time.Time, r storage.LockRequest) (storage.Lock, error) {
	l, err := s.acquireWithin(ctx, now, r)
	return l, wrapLock("acquire", r.Name, err)
}

func (s *Store) acquireWithin(ctx context.Context, now time.Time, r storage.LockRequest) (storage.Lock, error) {
	if err := r.Check(now); err != nil {
		return storage.Lock{}, err
	}
	began := time.Now()
	w := &lockWaiter{name: r.Name}
	for {
		l, waits, err := s.acquire(ctx, now, r, w, r.Wait-time.Since(began))
		if !waits {
			return l, err
		}
		refused, ok := errors.AsType[*storage.LockedError](err)
		if !ok {
			return l, err
		}
		if err := s.awaitLock(ctx, w, min(refused.Left(), r.Wait-time.Since(began))); err != nil {
			return storage.Lock{}, err
		}
	}
}

// acquire tries once. If somebody else has the lock, the waiter is entered in the same step, unless
// there is no time left to wait. What it has begun it brings to its end, though ctx ends: nobody would
// know of the lock.
func (s *Store) acquire(
	ctx context.Context, now time.Time, r storage.LockRequest, w *lockWaiter, left time.Duration,
) (storage.Lock, bool, error) {
	if err := ctx.Err(); err != nil {
		return storage.Lock{}, false, err
	}
	l, err := s.onLocks(context.WithoutCancel(ctx), now, r.Name, func(c *lockCall) (storage.Lock, error) {
		held := c.held[r.Name]
		switch {
		case ctx.Err() != nil:
			return storage.Lock{}, ctx.Err()
		case held == nil:
			c.last = max(c.last+1, c.now*1000)
			held = &lock{name: r.Name, owner: r.Owner, token: c.last}
		case held.owner != r.Owner:
			if left > 0 {
				s.lockWaits.join(w)
			}
			return storage.Lock{}, &storage.LockedError{
				Name: r.Name, Owner: held.owner, Now: instantOf(c.now), Until: instantOf(held.until),
			}
		}
		return c.hold(held, r.TTL), nil
	})
	if err == nil {
		return l, false, nil
	}
	if _, refused := errors.AsType[*storage.LockedError](err); refused {
		return l, left > 0, err
	}
	s.lockWaits.giveUp(w) // the call may come to its turn yet
	return l, false, err
}

// Renew implements [storage.Locker]. R16
func (s *Store) Renew(ctx context.Context, now time.Time, r storage.LockReceipt, ttl time.Duration) (storage.Lock, error) {
	if err := cmp.Or(r.Check(now), storage.CheckTTL(ttl)); err != nil {
		return storage.Lock{}, wrap("renew lock", r.Name, err)
	}
	l, err := s.onLocks(ctx, now, r.Name, func(c *lockCall) (storage.Lock, error) {
		held := c.proven(r)
		if held == nil {
			return storage.Lock{}, storage.ErrLockLost
		}
		return c.hold(held, ttl), nil
	})
	return l, wrap("renew lock", r.Name, err)
}

// Release implements [storage.Locker]. R16
func (s *Store) Release(ctx context.Context, now time.Time, r storage.LockReceipt) error {
	if err := r.Check(now); err != nil {
		return wrap("release lock", r.Name, err)
	}
	_, err := s.onLocks(ctx, now, r.Name, func(c *lockCall) (storage.Lock, error) {
		held := c.proven(r)
		if held == nil {
			return storage.Lock{}, storage.ErrLockLost
		}
		c.drop(held)
		c.t.durable = true
		s.lockWaits.wake(r.Name)
		return storage.Lock{}, nil
	})
	return wrap("release lock", r.Name, err)
}

// wrapLock names the operation that failed, unless the error names the lock by itself.
func wrapLock(op, name string, err error) error {
	if _, ok := errors.AsType[*storage.LockedError](err); ok {
		return err
	}
	return wrap(op+" lock", name, err)
}

// instantOf returns an instant in Unix milliseconds as the contract has it.
func instantOf(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

// lockCall is one call on the locks, at one instant.
type lockCall struct {
	*locks
	t   *txn
	now int64
}

// onLocks runs a function on the locks, after those that ended are removed.
func (s *Store) onLocks(
	ctx context.Context, now time.Time, name string, run func(c *lockCall) (storage.Lock, error),
) (storage.Lock, error) {
	answer := make(chan storage.Lock, 1)
	err := s.do(ctx, func(t *txn) error {
		if s.locks == nil {
			l, err := t.loadLocks()
			if err != nil {
				return err
			}
			s.locks = l
		}
		c := &lockCall{locks: s.locks, t: t, now: now.UnixMilli()}
		if now.IsZero() {
			c.now = c.tick(s.clock().UnixMilli())
			c.sweep()
		}
		if held := c.held[name]; held != nil && held.until <= c.now {
			c.drop(held)
		}
		l, err := run(c)
		answer <- l
		return err
	})
	if err != nil {
		return storage.Lock{}, err
	}
	return <-answer, nil
}

// tick returns what the engine's own clock shows, which runs backwards in large steps only. R2
func (l *locks) tick(ms int64) int64 {
	if step := l.clock - ms; step > 0 && step <= storage.MaxClockStep.Milliseconds() {
		return l.clock
	}
	l.clock = ms
	return ms
}

func (c *lockCall) sweep() {
	for range storage.Sweep {
		first, ok := c.ending.Min()
		if !ok || first.until > c.now {
			return
		}
		c.drop(first)
	}
}

// hold makes a lock end a while after now.
func (c *lockCall) hold(held *lock, ttl time.Duration) storage.Lock {
	c.ending.Delete(held)
	held.until = c.now + storage.Millis(ttl).Milliseconds()
	c.ending.Set(held)
	c.held[held.name] = held
	c.t.set(lockKey(held.name), held.encode())
	c.t.set(locksKey(), c.encode())
	c.t.durable = true
	return storage.Lock{
		Name: held.name, Owner: held.owner, Token: held.token, Now: instantOf(c.now), Until: instantOf(held.until),
	}
}

// drop removes a lock. That it has ended stays true without the disk.
func (c *lockCall) drop(held *lock) {
	delete(c.held, held.name)
	c.ending.Delete(held)
	c.t.del(lockKey(held.name))
}

// proven returns the lock that a receipt is of, nil if it is lost.
func (c *lockCall) proven(r storage.LockReceipt) *lock {
	if held := c.held[r.Name]; held != nil && held.owner == r.Owner && held.token == r.Token {
		return held
	}
	return nil
}
