// SPDX-License-Identifier: Apache-2.0

package pebblestore

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/bidemq/bide/storage"
)

// lockWaits are the calls that wait for locks. One process owns the directory, so nobody outside of
// it has to be told.
type lockWaits struct {
	mu     sync.Mutex
	byName map[string][]*lockWaiter // in order of arrival; none is empty
}

// lockWaiter is an Acquire that waits.
type lockWaiter struct {
	name  string
	told  bool          // of a release
	gone  bool          // the caller has given up
	woken chan struct{} // closed with told
}

// join enters a waiter: behind the others, or in front of them if it was told already and somebody
// else was faster.
func (l *lockWaits) join(w *lockWaiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w.gone {
		return
	}
	ws := l.byName[w.name]
	at := len(ws)
	if w.told {
		at = 0
	}
	w.told, w.woken = false, make(chan struct{})
	l.byName[w.name] = slices.Insert(ws, at, w)
}

// wake tells the first that waits for a lock.
func (l *lockWaits) wake(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.first(name)
}

func (l *lockWaits) first(name string) {
	if ws := l.byName[name]; len(ws) > 0 {
		ws[0].told = true
		close(ws[0].woken)
		l.remove(ws[0])
	}
}

// leave takes a waiter out for a while.
func (l *lockWaits) leave(w *lockWaiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.remove(w)
}

// giveUp takes a waiter out for good. If it was told, the next one is.
func (l *lockWaits) giveUp(w *lockWaiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w.gone = true
	if !l.remove(w) && w.told {
		l.first(w.name)
	}
}

// remove says whether the waiter was still there.
func (l *lockWaits) remove(w *lockWaiter) bool {
	ws := l.byName[w.name]
	i := slices.Index(ws, w)
	if i < 0 {
		return false
	}
	if ws = slices.Delete(ws, i, i+1); len(ws) == 0 {
		delete(l.byName, w.name)
	} else {
		l.byName[w.name] = ws
	}
	return true
}

// awaitLock sleeps until a waiter is told of a release, or d is over.
func (s *Store) awaitLock(ctx context.Context, w *lockWaiter, d time.Duration) error {
	t := time.NewTimer(max(d, 0))
	defer t.Stop()
	var err error
	select {
	case <-w.woken:
		return nil
	case <-t.C:
		s.lockWaits.leave(w)
		return nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-s.closed:
		err = storage.ErrClosed
	case <-s.guard.frozen:
		err = diskError(s.guard.failure())
	}
	s.lockWaits.giveUp(w)
	return err
}
