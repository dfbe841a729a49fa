// SPDX-License-Identifier: Apache-2.0

package pebblestore

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/bidemq/bide/storage"
)

// notices tell waiting calls which scopes have something for them. One process owns the directory,
// so nobody outside of it has to be told.
type notices struct {
	mu      sync.Mutex
	sent    map[string]int64                // notices of a queue so far
	seen    map[string]seen                 // by scope
	waiters map[string]map[*waiter]struct{} // by queue
}

// seen is what the latest claim of a scope knew.
type seen struct {
	sent int64
	next time.Time // when there may be more, zero if never
}

type waiter struct {
	scopes []storage.Scope
	names  []string
	woken  chan struct{} // closed by the first notice
}

// maxSeen bounds the scopes remembered. Those forgotten are claimed once for nothing.
const maxSeen = 10_000

func newNotices() notices {
	return notices{sent: map[string]int64{}, seen: map[string]seen{}, waiters: map[string]map[*waiter]struct{}{}}
}

// send notes that a queue has something and wakes all that wait for some of it.
func (n *notices) send(queue string) (woken int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.sent[queue]++
	for w := range n.waiters[queue] {
		n.wake(w)
		woken++
	}
	return woken
}

func (n *notices) wake(w *waiter) {
	n.leave(w)
	close(w.woken)
}

// claimed notes what a claim said is next, for those who wait with what an earlier claim of the same
// scope said.
func (n *notices) claimed(scope *storage.Scope, next time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := seen{sent: n.sent[scope.Queue]}
	if next != storage.Forever {
		s.next = time.Now().Add(next)
	}
	if len(n.seen) >= maxSeen {
		clear(n.seen)
	}
	name := scope.String()
	n.seen[name] = s
	if next > 0 {
		return
	}
	for w := range n.waiters[scope.Queue] {
		if slices.Contains(w.names, name) {
			n.wake(w)
		}
	}
}

func (n *notices) leave(w *waiter) {
	for i := range w.scopes {
		q := w.scopes[i].Queue
		delete(n.waiters[q], w)
		if len(n.waiters[q]) == 0 {
			delete(n.waiters, q)
		}
	}
}

// ready returns those of a waiter's scopes that are worth a claim, and when the first of the others
// will be; zero if none will.
func (n *notices) ready(w *waiter) (ready []int, first time.Time) {
	now := time.Now()
	for i := range w.scopes {
		s := n.seen[w.names[i]]
		switch {
		case n.sent[w.scopes[i].Queue] > s.sent, !s.next.IsZero() && !s.next.After(now):
			ready = append(ready, i)
		case s.next.IsZero():
		case first.IsZero() || s.next.Before(first):
			first = s.next
		}
	}
	return ready, first
}

// join returns the scopes that are worth a claim, or else enters the waiter for the next notice and
// says how long it may wait at most.
func (n *notices) join(w *waiter, d time.Duration) ([]int, time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	ready, first := n.ready(w)
	if len(ready) > 0 {
		return ready, 0
	}
	if !first.IsZero() {
		d = min(d, time.Until(first))
	}
	for i := range w.scopes {
		q := w.scopes[i].Queue
		if n.waiters[q] == nil {
			n.waiters[q] = map[*waiter]struct{}{}
		}
		n.waiters[q][w] = struct{}{}
	}
	return nil, max(d, 0)
}

// part ends a wait and returns the scopes that are worth a claim.
func (n *notices) part(w *waiter) []int {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.leave(w)
	ready, _ := n.ready(w)
	return ready
}

func newWaiter(scopes []storage.Scope) *waiter {
	w := &waiter{scopes: slices.Clone(scopes), names: make([]string, len(scopes)), woken: make(chan struct{})}
	for i := range scopes {
		w.names[i] = scopes[i].String()
	}
	return w
}

// Wait implements [storage.Engine]. R8
func (s *Store) Wait(ctx context.Context, scopes []storage.Scope, d time.Duration) ([]int, error) {
	for i := range scopes {
		if err := scopes[i].Check(); err != nil {
			return nil, wrap("wait", "", err)
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if s.isClosed() {
		return nil, wrap("wait", "", storage.ErrClosed)
	}
	if err := s.guard.failure(); err != nil {
		return nil, wrap("wait", "", diskError(err))
	}
	w := newWaiter(scopes)
	ready, d := s.notices.join(w, d)
	if len(ready) > 0 {
		return ready, nil
	}
	var timeout <-chan time.Time
	if d != storage.Forever {
		t := time.NewTimer(d)
		defer t.Stop()
		timeout = t.C
	}
	var err error
	select {
	case <-w.woken:
	case <-timeout:
	case <-ctx.Done():
		err = ctx.Err()
	case <-s.closed:
		err = wrap("wait", "", storage.ErrClosed)
	case <-s.guard.frozen:
		err = wrap("wait", "", diskError(s.guard.failure()))
	}
	ready = s.notices.part(w)
	if err != nil {
		return nil, err
	}
	return ready, nil
}
