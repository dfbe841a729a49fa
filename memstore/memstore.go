// SPDX-License-Identifier: Apache-2.0

// Package memstore keeps messages in the memory of the process. It is the reference that the other
// engines are compared with, and what programs are tested with: inside a testing/synctest bubble it
// runs on the bubble's clock. Nothing survives the process.
package memstore

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/bidemq/bide/storage"
)

// Options of a Store; the zero value is usable.
type Options struct {
	MaxBody int              // bytes of body and headers, 0 is storage.DefaultBody
	Clock   func() time.Time // the engine's own clock, nil is time.Now
}

// Store is an engine in memory. Its methods may be called from many goroutines.
type Store struct {
	maxBody int
	clock   func() time.Time
	closed  chan struct{}

	mu      sync.Mutex // guards everything below
	queues  map[string]*queue
	notices notices
	locks   locks
	topics  topics
}

var _ storage.Engine = (*Store)(nil)

// New returns an empty Store.
func New(o Options) *Store {
	if o.MaxBody == 0 {
		o.MaxBody = storage.DefaultBody
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	return &Store{
		maxBody: o.MaxBody,
		clock:   o.Clock,
		closed:  make(chan struct{}),
		queues:  map[string]*queue{},
		notices: notices{sent: map[string]int64{}, seen: map[string]seen{}, parts: map[string]bool{}, waiters: map[*waiter]struct{}{}},
		locks:   newLocks(),
		topics:  topics{},
	}
}

// Close ends the Store and frees its memory.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.isClosed() {
		close(s.closed)
		clear(s.queues)
		clear(s.topics)
		s.locks = newLocks()
	}
	return nil
}

func (s *Store) isClosed() bool {
	select {
	case <-s.closed:
		return true
	default:
		return false
	}
}

// call is one call on one queue: the queue, its instant, and what to tell those who wait.
type call struct {
	*queue
	now   time.Time
	store *Store
	first time.Time // when something was claimable by time alone as the call began, zero if never
}

// begin locks the store and works off what time has done to the queue. The caller runs end, also
// when it changed nothing.
func (s *Store) begin(ctx context.Context, now time.Time, name string) (*call, error) {
	if err := storage.CheckNow(now); err != nil {
		return nil, err
	}
	c, err := s.lock(ctx, name)
	if err != nil {
		return nil, err
	}
	c.now = c.instant(now, s.clock)
	c.first, _ = c.nextAt(&storage.Scope{Queue: name})
	c.sweep()
	return c, nil
}

// lock begins a call in which no time passes.
func (s *Store) lock(ctx context.Context, name string) (*call, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := storage.CheckQueue(name); err != nil {
		return nil, err
	}
	s.mu.Lock()
	if s.isClosed() {
		s.mu.Unlock()
		return nil, fmt.Errorf("memstore: %w", storage.ErrClosed)
	}
	q := s.queues[name]
	if q == nil {
		q = newQueue(name)
	}
	return &call{queue: q, store: s}, nil
}

// end unlocks the store and wakes those who wait for what the call made claimable earlier than
// anything was. Who asked for a part of the queue may not know of what was earlier.
func (c *call) end() {
	if c.made && !c.config.Paused {
		at, ok := c.nextAt(&storage.Scope{Queue: c.name})
		if ok && (c.store.notices.parts[c.name] || c.first.IsZero() || at.Before(c.first) || !at.After(c.now)) {
			c.total.Wakeups += c.store.notices.send(c.name)
		}
	}
	c.made = false
	c.store.mu.Unlock()
}

// keep makes the queue known.
func (c *call) keep() { c.store.queues[c.name] = c.queue }

// Enqueue implements [storage.Engine].
func (s *Store) Enqueue(ctx context.Context, now time.Time, queue string, recs []storage.Record) ([]storage.EnqueueResult, error) {
	if err := storage.CheckBatch(len(recs)); err != nil {
		return nil, err
	}
	c, err := s.begin(ctx, now, queue)
	if err != nil {
		return nil, err
	}
	defer c.end()
	results := make([]storage.EnqueueResult, len(recs))
	for i := range recs {
		results[i] = c.enqueue(&recs[i], s.maxBody)
		if results[i].Outcome != storage.Refused {
			c.keep()
		}
	}
	return results, nil
}

// Claim implements [storage.Engine].
func (s *Store) Claim(ctx context.Context, now time.Time, cl storage.Claim) (storage.Claimed, error) {
	if err := cl.Check(); err != nil {
		return storage.Claimed{}, err
	}
	c, err := s.begin(ctx, now, cl.Queue)
	if err != nil {
		return storage.Claimed{}, err
	}
	defer c.end()
	scope := cl.Scope()
	swept := c.made
	claimed := c.claim(cl)
	c.made = swept && !scope.All() // what the sweep made claimable, a claim of all has seen
	s.notices.claimed(&scope, claimed.Next)
	return claimed, nil
}

// Extend implements [storage.Engine].
func (s *Store) Extend(ctx context.Context, now time.Time, lease time.Duration, rs []storage.Receipt) ([]storage.Receipt, error) {
	if err := storage.CheckLease(lease); err != nil {
		return nil, err
	}
	if err := storage.CheckBatch(len(rs)); err != nil {
		return nil, err
	}
	for _, r := range rs {
		if err := r.Check(); err != nil {
			return nil, err
		}
	}
	return perQueue(ctx, s, now, rs, func(r storage.Receipt) storage.Receipt { return r },
		func(c *call, r storage.Receipt) bool { return c.extend(r, lease) })
}

// Settle implements [storage.Engine].
func (s *Store) Settle(ctx context.Context, now time.Time, ss []storage.Settlement) ([]storage.Receipt, error) {
	if err := storage.CheckBatch(len(ss)); err != nil {
		return nil, err
	}
	for i := range ss {
		if err := ss[i].Check(); err != nil {
			return nil, err
		}
	}
	return perQueue(ctx, s, now, ss, func(st storage.Settlement) storage.Receipt { return st.Receipt },
		func(c *call, st storage.Settlement) bool { return c.settle(st) })
}

// perQueue runs do on each item, one call for the items of each queue, and returns the receipts for
// which it says false, in the order of the items.
func perQueue[T any](ctx context.Context, s *Store, now time.Time, items []T, receipt func(T) storage.Receipt, do func(*call, T) bool) ([]storage.Receipt, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := storage.CheckNow(now); err != nil {
		return nil, err
	}
	var lost []storage.Receipt
	var done []string
	for _, first := range items {
		name := receipt(first).Queue
		if slices.Contains(done, name) {
			continue
		}
		done = append(done, name)
		c, err := s.begin(ctx, now, name)
		if err != nil {
			return nil, err
		}
		for _, item := range items {
			if r := receipt(item); r.Queue == name && !do(c, item) {
				lost = append(lost, r)
			}
		}
		c.end()
	}
	return lost, nil
}
