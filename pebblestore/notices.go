// SPDX-License-Identifier: Apache-2.0

package pebblestore

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/bidemq/bide/storage"
)

// notices tell waiting calls which queues have something for them. One process owns the directory,
// so nobody outside of it has to be told.
type notices struct {
	mu      sync.Mutex
	from    map[string]time.Time            // when a queue is worth a claim: since a notice, or as its latest claim said; absent if never
	waiters map[string]map[*waiter]struct{} // by queue
}

type waiter struct {
	queues []string
	woken  chan struct{} // closed by the first notice
}

func newNotices() notices {
	return notices{from: map[string]time.Time{}, waiters: map[string]map[*waiter]struct{}{}}
}

// send notes that a queue has something and wakes all that wait for it.
func (n *notices) send(queue string) (woken int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.from[queue] = time.Time{}
	for w := range n.waiters[queue] {
		n.leave(w)
		close(w.woken)
		woken++
	}
	return woken
}

// claimed notes what a claim said is next, for those who wait with what an earlier claim said.
func (n *notices) claimed(queue string, next time.Duration) {
	if next == 0 {
		n.send(queue)
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.from, queue)
	if next != storage.Forever {
		n.from[queue] = time.Now().Add(next)
	}
}

func (n *notices) leave(w *waiter) {
	for _, q := range w.queues {
		delete(n.waiters[q], w)
		if len(n.waiters[q]) == 0 {
			delete(n.waiters, q)
		}
	}
}

// ready returns the queues that are worth a claim, and when the first of the others will be; zero if
// none will.
func (n *notices) ready(queues []string) (ready []string, first time.Time) {
	now := time.Now()
	for _, q := range queues {
		at, ok := n.from[q]
		switch {
		case !ok:
		case !at.After(now):
			ready = append(ready, q)
		case first.IsZero() || at.Before(first):
			first = at
		}
	}
	return ready, first
}

// join returns the queues that are worth a claim, or else a waiter for the next notice and how long
// it may wait at most.
func (n *notices) join(queues []string, d time.Duration) ([]string, *waiter, time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	ready, first := n.ready(queues)
	if len(ready) > 0 {
		return ready, nil, 0
	}
	if !first.IsZero() {
		d = min(d, time.Until(first))
	}
	w := &waiter{queues: queues, woken: make(chan struct{})}
	for _, q := range queues {
		if n.waiters[q] == nil {
			n.waiters[q] = map[*waiter]struct{}{}
		}
		n.waiters[q][w] = struct{}{}
	}
	return nil, w, max(d, 0)
}

// part ends a wait and returns the queues that are worth a claim.
func (n *notices) part(w *waiter) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.leave(w)
	ready, _ := n.ready(w.queues)
	return ready
}

// Wait implements [storage.Engine]. R8
func (s *Store) Wait(ctx context.Context, scopes []storage.Scope, d time.Duration) ([]int, error) {
	queues := make([]string, len(scopes))
	for i := range scopes {
		queues[i] = scopes[i].Queue
	}
	names, err := s.wait(ctx, queues, d)
	var ready []int
	for i, q := range queues {
		if slices.Contains(names, q) {
			ready = append(ready, i)
		}
	}
	return ready, err
}

func (s *Store) wait(ctx context.Context, queues []string, d time.Duration) ([]string, error) {
	for _, q := range queues {
		if err := storage.CheckQueue(q); err != nil {
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
	ready, w, d := s.notices.join(slices.Clone(queues), d)
	if w == nil {
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
