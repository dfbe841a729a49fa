// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/bidemq/bide/storage"
)

// notices tell waiting calls which queues have something for them.
type notices struct {
	from    map[string]time.Time // when a queue is worth a claim: since a notice, or as its latest claim said; absent if never
	waiters map[*waiter]struct{}
}

type waiter struct {
	queues []string
	woken  chan struct{} // closed by the first notice
}

// send notes that a queue has something and wakes all that wait for it.
func (n *notices) send(queue string) (woken int64) {
	n.from[queue] = time.Time{}
	for w := range n.waiters {
		if slices.Contains(w.queues, queue) {
			close(w.woken)
			delete(n.waiters, w)
			woken++
		}
	}
	return woken
}

// claimed notes what a claim said is next, for those who wait with what an earlier claim said.
func (n *notices) claimed(queue string, next time.Duration) {
	switch next {
	case 0:
		n.send(queue)
	case storage.Forever:
		delete(n.from, queue)
	default:
		n.from[queue] = time.Now().Add(next)
	}
}

// ready returns those of the queues that are worth a claim, and when the first of the others is.
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

// Wait implements [storage.Engine]. R8
func (s *Store) Wait(ctx context.Context, queues []string, d time.Duration) ([]string, error) {
	for _, q := range queues {
		if err := storage.CheckQueue(q); err != nil {
			return nil, err
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	w := &waiter{queues: queues, woken: make(chan struct{})}
	s.mu.Lock()
	ready, first := s.notices.ready(queues)
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
	ready, _ = s.notices.ready(queues)
	return ready, nil
}
