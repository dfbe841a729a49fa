// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tidwall/btree"

	"github.com/bidemq/bide/storage"
)

// locks are those that somebody holds, and who waits for one.
type locks struct {
	token   int64     // the last one
	clock   time.Time // latest answer of the engine's own clock
	held    map[string]*storage.Lock
	ending  *btree.BTreeG[*storage.Lock] // the same by end
	waiting map[string][]*lockWaiter     // by name, in order of arrival; none is empty
}

// lockWaiter is an Acquire that waits.
type lockWaiter struct {
	name  string
	told  bool          // of a release
	woken chan struct{} // closed with that
}

func newLocks() locks {
	return locks{
		held: map[string]*storage.Lock{},
		ending: btree.NewBTreeGOptions(func(a, b *storage.Lock) bool {
			return cmp.Or(a.Until.Compare(b.Until), cmp.Compare(a.Name, b.Name)) < 0
		}, btree.Options{NoLocks: true}),
		waiting: map[string][]*lockWaiter{},
	}
}

// begin returns the instant of a call, after it has removed locks that ended.
func (l *locks) begin(now time.Time, name string, clock func() time.Time) time.Time {
	if now.IsZero() {
		now = floor(clock())
		if now.Before(l.clock) && l.clock.Sub(now) <= storage.MaxClockStep {
			now = l.clock
		}
		l.clock = now
		for range storage.Sweep {
			first, ok := l.ending.Min()
			if !ok || first.Until.After(now) {
				break
			}
			l.drop(first)
		}
	}
	now = floor(now)
	if held := l.held[name]; held != nil && !held.Until.After(now) {
		l.drop(held)
	}
	return now
}

func (l *locks) drop(held *storage.Lock) {
	delete(l.held, held.Name)
	l.ending.Delete(held)
}

// hold makes a lock end a while after now.
func (l *locks) hold(held *storage.Lock, now time.Time, ttl time.Duration) storage.Lock {
	l.ending.Delete(held)
	held.Now, held.Until = now, now.Add(storage.Millis(ttl))
	l.held[held.Name] = held
	l.ending.Set(held)
	return *held
}

// acquire takes a lock, or says who has it.
func (l *locks) acquire(now time.Time, r *storage.LockRequest) (storage.Lock, error) {
	held := l.held[r.Name]
	switch {
	case held == nil:
		l.token = max(l.token+1, now.UnixMicro())
		held = &storage.Lock{Name: r.Name, Owner: r.Owner, Token: l.token}
	case held.Owner != r.Owner:
		return storage.Lock{}, &storage.LockedError{Name: r.Name, Owner: held.Owner, Now: now, Until: held.Until}
	}
	return l.hold(held, now, r.TTL), nil
}

// proven returns the lock that a receipt is of, nil if it is lost.
func (l *locks) proven(r storage.LockReceipt) *storage.Lock {
	if held := l.held[r.Name]; held != nil && held.Receipt() == r {
		return held
	}
	return nil
}

// wake tells the first that waits for a lock.
func (l *locks) wake(name string) {
	if ws := l.waiting[name]; len(ws) > 0 {
		ws[0].told = true
		close(ws[0].woken)
		l.leave(ws[0])
	}
}

// join enters a waiter: behind the others, or in front of them if it was told already and somebody
// else was faster.
func (l *locks) join(w *lockWaiter) {
	ws := l.waiting[w.name]
	at := len(ws)
	if w.told {
		at = 0
	}
	w.told, w.woken = false, make(chan struct{})
	l.waiting[w.name] = slices.Insert(ws, at, w)
}

// leave takes a waiter out. It says whether it was still there.
func (l *locks) leave(w *lockWaiter) bool {
	ws := l.waiting[w.name]
	i := slices.Index(ws, w)
	if i < 0 {
		return false
	}
	if ws = slices.Delete(ws, i, i+1); len(ws) == 0 {
		delete(l.waiting, w.name)
	} else {
		l.waiting[w.name] = ws
	}
	return true
}

// Acquire implements [storage.Locker]. R16
func (s *Store) Acquire(ctx context.Context, now time.Time, r storage.LockRequest) (storage.Lock, error) {
	if err := r.Check(now); err != nil {
		return storage.Lock{}, err
	}
	began := time.Now()
	w := &lockWaiter{name: r.Name}
	for {
		l, waits, err := s.acquire(ctx, now, &r, w, r.Wait-time.Since(began))
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
// there is no time left to wait.
func (s *Store) acquire(
	ctx context.Context, now time.Time, r *storage.LockRequest, w *lockWaiter, left time.Duration,
) (l storage.Lock, waits bool, err error) {
	now, err = s.enterLocks(ctx, now, r.Name)
	if err != nil {
		return l, false, err
	}
	defer s.mu.Unlock()
	l, err = s.locks.acquire(now, r)
	if waits = err != nil && left > 0; waits {
		s.locks.join(w)
	}
	return l, waits, err
}

// awaitLock sleeps until a waiter is told of a release, or d is over. One that is told and gives up
// tells the next.
func (s *Store) awaitLock(ctx context.Context, w *lockWaiter, d time.Duration) error {
	t := time.NewTimer(max(d, 0))
	defer t.Stop()
	var err error
	select {
	case <-w.woken:
		return nil
	case <-t.C:
	case <-ctx.Done():
		err = ctx.Err()
	case <-s.closed:
		err = fmt.Errorf("memstore: lock %q: %w", w.name, storage.ErrClosed)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.locks.leave(w) && err != nil {
		s.locks.wake(w.name)
	}
	return err
}

// enterLocks locks the store and works off what time has done to its locks.
func (s *Store) enterLocks(ctx context.Context, now time.Time, name string) (time.Time, error) {
	if err := s.enter(ctx); err != nil {
		return now, err
	}
	return s.locks.begin(now, name, s.clock), nil
}

// enter locks the store.
func (s *Store) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	if s.isClosed() {
		s.mu.Unlock()
		return fmt.Errorf("memstore: %w", storage.ErrClosed)
	}
	return nil
}

// Renew implements [storage.Locker]. R16
func (s *Store) Renew(ctx context.Context, now time.Time, r storage.LockReceipt, ttl time.Duration) (storage.Lock, error) {
	if err := cmp.Or(r.Check(now), storage.CheckTTL(ttl)); err != nil {
		return storage.Lock{}, err
	}
	now, err := s.enterLocks(ctx, now, r.Name)
	if err != nil {
		return storage.Lock{}, err
	}
	defer s.mu.Unlock()
	held := s.locks.proven(r)
	if held == nil {
		return storage.Lock{}, fmt.Errorf("memstore: lock %q: %w", r.Name, storage.ErrLockLost)
	}
	return s.locks.hold(held, now, ttl), nil
}

// Release implements [storage.Locker]. R16
func (s *Store) Release(ctx context.Context, now time.Time, r storage.LockReceipt) error {
	if err := r.Check(now); err != nil {
		return err
	}
	if _, err := s.enterLocks(ctx, now, r.Name); err != nil {
		return err
	}
	defer s.mu.Unlock()
	held := s.locks.proven(r)
	if held == nil {
		return fmt.Errorf("memstore: lock %q: %w", r.Name, storage.ErrLockLost)
	}
	s.locks.drop(held)
	s.locks.wake(r.Name)
	return nil
}
