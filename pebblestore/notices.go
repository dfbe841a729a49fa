// SPDX-License-Identifier: Apache-2.0

package pebblestore

import (
	"context"
	"sync"
	"time"

	"github.com/bidemq/bide/storage"
)

// notices tell waiting calls which queues have something for them. One process owns the directory,
// so nobody outside of it has to be told.
type notices struct {
	mu      sync.Mutex
	pending map[string]bool                 // queues with a notice since their last claim
	waiters map[string]map[*waiter]struct{} // by queue
}

type waiter struct {
	queues []string
	woken  chan struct{} // closed by the first notice
}

func newNotices() notices {
	return notices{pending: map[string]bool{}, waiters: map[string]map[*waiter]struct{}{}}
}

// send notes that a queue has something and wakes all that wait for it.
func (n *notices) send(queue string) (woken int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pending[queue] = true
	for w := range n.waiters[queue] {
		n.leave(w)
		close(w.woken)
		woken++
	}
	return woken
}

// clear forgets the notice of a queue, because somebody looks at it.
func (n *notices) clear(queue string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.pending, queue)
}

func (n *notices) leave(w *waiter) {
	for _, q := range w.queues {
		delete(n.waiters[q], w)
		if len(n.waiters[q]) == 0 {
			delete(n.waiters, q)
		}
	}
}

func (n *notices) ready(queues []string) []string {
	var ready []string
	for _, q := range queues {
		if n.pending[q] {
			ready = append(ready, q)
		}
	}
	return ready
}

// join returns the queues that have a notice, or else a waiter for the next one.
func (n *notices) join(queues []string) ([]string, *waiter) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if ready := n.ready(queues); len(ready) > 0 {
		return ready, nil
	}
	w := &waiter{queues: queues, woken: make(chan struct{})}
	for _, q := range queues {
		if n.waiters[q] == nil {
			n.waiters[q] = map[*waiter]struct{}{}
		}
		n.waiters[q][w] = struct{}{}
	}
	return nil, w
}

// part ends a wait and returns the queues that have a notice.
func (n *notices) part(w *waiter) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.leave(w)
	return n.ready(w.queues)
}

// Wait implements [storage.Engine]. R8
func (s *Store) Wait(ctx context.Context, queues []string, d time.Duration) ([]string, error) {
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
	ready, w := s.notices.join(append([]string(nil), queues...))
	if w == nil {
		return ready, nil
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
