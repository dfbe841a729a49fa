// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"context"
	"fmt"
	"time"

	"github.com/bidemq/bide/storage"
)

// notices tell waiting calls which scopes have something for them.
type notices struct {
	sent    map[string]int64 // notices of a queue so far
	seen    map[string]seen  // by scope
	parts   map[string]bool  // queues of which somebody asked for a part
	waiters map[*waiter]struct{}
}

// seen is what the latest claim of a scope knew.
type seen struct {
	sent int64
	next time.Time // when there may be more, zero if never
}

type waiter struct {
	scopes []storage.Scope
	woken  chan struct{} // closed by the first notice
}

// maxSeen bounds the scopes remembered. Those forgotten are claimed once for nothing.
const maxSeen = 10_000

// send notes that a queue has something and wakes all that wait for it.
func (n *notices) send(queue string) (woken int64) {
	n.sent[queue]++
	return n.wake(func(s *storage.Scope) bool { return s.Queue == queue })
}

func (n *notices) wake(whom func(*storage.Scope) bool) (woken int64) {
	for w := range n.waiters {
		for i := range w.scopes {
			if whom(&w.scopes[i]) {
				close(w.woken)
				delete(n.waiters, w)
				woken++
				break
			}
		}
	}
	return woken
}

// claimed notes what a claim said is next, for those who wait with what an earlier claim said.
func (n *notices) claimed(scope *storage.Scope, next time.Duration) {
	s := seen{sent: n.sent[scope.Queue]}
	if next != storage.Forever {
		s.next = time.Now().Add(next)
	}
	if len(n.seen) >= maxSeen {
		clear(n.seen)
	}
	n.parts[scope.Queue] = n.parts[scope.Queue] || !scope.All()
	name := scope.String()
	n.seen[name] = s
	if next == 0 {
		n.wake(func(other *storage.Scope) bool { return other.String() == name })
	}
}

// ready returns those of the scopes that are worth a claim, and when the first of the others is.
func (n *notices) ready(scopes []storage.Scope) (ready []int, first time.Time) {
	now := time.Now()
	for i := range scopes {
		s := n.seen[scopes[i].String()]
		switch {
		case n.sent[scopes[i].Queue] > s.sent, !s.next.IsZero() && !s.next.After(now):
			ready = append(ready, i)
		case s.next.IsZero():
		case first.IsZero() || s.next.Before(first):
			first = s.next
		}
	}
	return ready, first
}

// Wait implements [storage.Engine]. R8
func (s *Store) Wait(ctx context.Context, scopes []storage.Scope, d time.Duration) ([]int, error) {
	for i := range scopes {
		if err := scopes[i].Check(); err != nil {
			return nil, err
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	w := &waiter{scopes: scopes, woken: make(chan struct{})}
	s.mu.Lock()
	ready, first := s.notices.ready(scopes)
	if len(ready) > 0 {
		s.mu.Unlock()
		return ready, nil
	}
	s.notices.waiters[w] = struct{}{}
	s.mu.Unlock()

	if !first.IsZero() {
		d = min(d, time.Until(first))
	}
	var timeout <-chan time.Time
	if d != storage.Forever {
		t := time.NewTimer(max(d, 0))
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
		err = fmt.Errorf("memstore: wait: %w", storage.ErrClosed)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.notices.waiters, w)
	if err != nil {
		return nil, err
	}
	ready, _ = s.notices.ready(scopes)
	return ready, nil
}
