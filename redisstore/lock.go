// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/bidemq/bide/storage"
)

const (
	// lookAgain is how long a process waits for a lock at most before it asks again, should a notice
	// be lost.
	lookAgain = 5 * time.Second
	// unreachable is how long who waits for a lock puts up with a server that does not answer.
	unreachable = 2 * patience
	// remembered is how long Redis keeps a process among those who wait that does not ask again.
	remembered = 3 * lookAgain
	// aftermath is how long an Acquire whose context has ended waits for the answer of a call that is
	// under way: nobody would know of the lock.
	aftermath = time.Second
)

// Acquire implements [storage.Locker]. R16
func (s *Store) Acquire(ctx context.Context, now time.Time, r storage.LockRequest) (storage.Lock, error) {
	if err := r.Check(now); err != nil {
		return storage.Lock{}, err
	}
	if err := s.open(ctx); err != nil {
		return storage.Lock{}, err
	}
	if r.Wait == 0 {
		l, _, err := s.acquire(ctx, now, &r, "", "")
		return l, err
	}
	return s.acquireWaiting(ctx, &r)
}

// acquireWaiting tries until it has the lock or its time is over: it is entered as one who waits by
// the script that refuses it, told of releases, and comes by itself at the holder's end.
func (s *Store) acquireWaiting(ctx context.Context, r *storage.LockRequest) (l storage.Lock, err error) {
	s.listen()
	began := time.Now()
	w := s.lockWaits.join()
	defer s.lockWaits.leave(w)
	arrival := ""
	defer func() {
		if err != nil && arrival != "" {
			s.withdraw(r.Name, w.id, arrival)
		}
	}()
	var failing time.Time // since when the server has not answered
	for {
		var came string
		l, came, err = s.acquireSoon(ctx, r, s.watches.channel+" "+w.id, arrival)
		arrival = cmp.Or(came, arrival)
		left := r.Wait - time.Since(began)
		refused, ok := errors.AsType[*storage.LockedError](err)
		switch {
		case ok:
			failing = time.Time{}
			left = min(left, refused.Left(), lookAgain)
		case errors.Is(err, storage.ErrUnavailable) && (failing.IsZero() || time.Since(failing) < unreachable):
			if failing.IsZero() {
				failing = time.Now()
			}
			left = min(left, firstPause)
		default:
			return l, err
		}
		if left <= 0 {
			return l, err
		}
		if err := s.awaitLock(ctx, w, left); err != nil {
			return l, err
		}
	}
}

// awaitLock sleeps until a waiter is told of a release, or d is over.
func (s *Store) awaitLock(ctx context.Context, w *lockWait, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-w.woken:
		return nil
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-s.life.Done():
		return fmt.Errorf("redisstore: wait for a lock: %w", storage.ErrClosed)
	}
}

// acquireSoon tries once. On a connection that has died without a word the answer never comes; who
// waits asks again, and gets the lock that an earlier try may have taken.
func (s *Store) acquireSoon(ctx context.Context, r *storage.LockRequest, waiter, arrival string) (storage.Lock, string, error) {
	limited, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	l, came, err := s.acquire(limited, time.Time{}, r, waiter, arrival)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		err = fmt.Errorf("redisstore: lock %q: %w: no answer within %s", r.Name, storage.ErrUnavailable, pingTimeout)
	}
	return l, came, err
}

// acquire tries once. A refusal of one who waits says when he came.
func (s *Store) acquire(ctx context.Context, now time.Time, r *storage.LockRequest, waiter, arrival string) (storage.Lock, string, error) {
	late, cancel := outlast(ctx, aftermath)
	defer cancel()
	m, err := s.runApart(late, lockAcquireScript, s.lockKeys, r.Name,
		milli(now), r.Name, r.Owner, decimal(length(r.TTL)), waiter, arrival, decimal(length(remembered)))
	if err != nil && ctx.Err() != nil {
		return storage.Lock{}, "", ctx.Err()
	}
	if err != nil {
		return storage.Lock{}, "", err
	}
	reply, err := texts(m, 4)
	if err != nil {
		return storage.Lock{}, "", fmt.Errorf("redisstore: lock %q: %w", r.Name, &ScriptError{lockAcquireScript.name, err})
	}
	at, until := reply.instant(1), reply.instant(2)
	if reply[0] == "0" {
		if len(reply) > 4 {
			arrival = reply[4]
		}
		return storage.Lock{}, arrival, &storage.LockedError{Name: r.Name, Owner: reply[3], Now: at, Until: until}
	}
	return storage.Lock{Name: r.Name, Owner: r.Owner, Token: reply.number(3), Now: at, Until: until}, "", nil
}

// outlast returns a context that ends a while after ctx.
func outlast(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	late, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		t := time.AfterFunc(d, cancel)
		context.AfterFunc(late, func() { t.Stop() })
	})
	return late, func() {
		stop()
		cancel()
	}
}

// withdraw takes a waiter out of Redis, in the background.
func (s *Store) withdraw(name, id, arrival string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life.Err() != nil {
		return
	}
	s.work.Go(func() {
		ctx, cancel := context.WithTimeout(s.life, patience)
		defer cancel()
		_, err := s.runApart(ctx, lockLeaveScript, s.lockKeys, name, "", name, s.watches.channel+" "+id, arrival)
		if err != nil && s.life.Err() == nil { // it is forgotten in a while
			s.options.Logger.Warn("could not leave those who wait for a lock", "lock", name, "error", err)
		}
	})
}

// Renew implements [storage.Locker]. R16
func (s *Store) Renew(ctx context.Context, now time.Time, r storage.LockReceipt, ttl time.Duration) (storage.Lock, error) {
	if err := cmp.Or(r.Check(now), storage.CheckTTL(ttl)); err != nil {
		return storage.Lock{}, err
	}
	m, err := s.runApart(ctx, lockRenewScript, s.lockKeys, r.Name,
		milli(now), r.Name, r.Owner, decimal(r.Token), decimal(length(ttl)))
	if err != nil {
		return storage.Lock{}, err
	}
	reply, err := texts(m, 1)
	switch {
	case err != nil:
		return storage.Lock{}, fmt.Errorf("redisstore: lock %q: %w", r.Name, &ScriptError{lockRenewScript.name, err})
	case len(reply) < 3:
		return storage.Lock{}, fmt.Errorf("redisstore: renew lock %q: %w", r.Name, storage.ErrLockLost)
	}
	return storage.Lock{Name: r.Name, Owner: r.Owner, Token: r.Token, Now: reply.instant(1), Until: reply.instant(2)}, nil
}

// Release implements [storage.Locker]. R16
func (s *Store) Release(ctx context.Context, now time.Time, r storage.LockReceipt) error {
	if err := r.Check(now); err != nil {
		return err
	}
	m, err := s.runApart(ctx, lockReleaseScript, s.lockKeys, r.Name, milli(now), r.Name, r.Owner, decimal(r.Token))
	if err != nil {
		return err
	}
	held, err := m.AsInt64()
	switch {
	case err != nil:
		return fmt.Errorf("redisstore: lock %q: %w", r.Name, &ScriptError{lockReleaseScript.name, err})
	case held == 0:
		return fmt.Errorf("redisstore: release lock %q: %w", r.Name, storage.ErrLockLost)
	}
	return nil
}

// fields is a reply of texts. Numbers are texts in it, because Lua would cut those that are no
// integers of its own.
type fields []string

func texts(m rueidis.RedisMessage, least int) (fields, error) {
	reply, err := m.AsStrSlice()
	if err != nil {
		return nil, err
	}
	if len(reply) < least {
		return nil, fmt.Errorf("%d fields", len(reply))
	}
	for i := 1; i < min(len(reply), 3); i++ {
		if _, err := strconv.ParseInt(reply[i], 10, 64); err != nil {
			return nil, err
		}
	}
	return reply, nil
}

func (f fields) number(i int) int64 {
	n, err := strconv.ParseInt(f[i], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func (f fields) instant(i int) time.Time { return instant(f.number(i)) }
