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
	pending map[string]bool // queues with a notice since their last claim
	waiters map[*waiter]struct{}
}

type waiter struct {
	queues []string
	woken  chan struct{} // gets one value with the first notice
}

// send notes that a queue has something and wakes all that wait for it.
func (n *notices) send(queue string) (woken int64) {
	n.pending[queue] = true
	for w := range n.waiters {
		if slices.Contains(w.queues, queue) {
			close(w.woken)
			delete(n.waiters, w)
			woken++
		}
	}
	return woken
}

// ready returns those of the queues that have a notice.
func (n *notices) ready(queues []string) []string {
	var ready []string
	for _, q := range queues {
		if n.pending[q] {
			ready = append(ready, q)
		}
	}
	return ready
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
	if ready := s.notices.ready(queues); len(ready) > 0 {
		s.mu.Unlock()
		return ready, nil
	}
	s.notices.waiters[w] = struct{}{}
	s.mu.Unlock()

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
	return s.notices.ready(queues), nil
}
