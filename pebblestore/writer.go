// SPDX-License-Identifier: Apache-2.0

package pebblestore

import (
	"fmt"
	"runtime"

	"github.com/cockroachdb/pebble/v2"

	"github.com/bidemq/bide/storage"
)

// groupBytes bounds what travels together, for the sake of those who wait.
const groupBytes = 4 << 20

// group is a number of operations that share a sync.
type group struct {
	ops   []*operation
	batch *pebble.Batch // to wait for, nil if there is nothing to sync
}

// write runs operations, one after the other, until the store is closed. All state in memory
// belongs to it. While one group is being synced the next is being built.
func (s *Store) write() {
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		for g := range s.groups {
			s.answer(g)
		}
	}()
	var ops []*operation
	t := newTxn(s)
	for !s.isClosed() {
		select {
		case <-s.inbox.filled:
		case <-s.closed:
			continue
		}
		runtime.Gosched() // so that those who are about to call come along
		ops = s.inbox.take(ops[:0])
		for rest := ops; len(rest) > 0; {
			g, n := s.build(t, rest)
			rest = rest[n:]
			if s.relaxed { // there is nothing to wait for
				s.answer(g)
			} else {
				s.groups <- g
			}
		}
		clear(ops)
	}
	t.begin()
	for _, q := range s.queues {
		t.change(q, false)
	}
	s.commit(t)
	close(s.groups)
	<-answered
	close(s.stopped)
}

// build runs operations until they are enough for one group, and applies what they did.
func (s *Store) build(t *txn, ops []*operation) (group, int) {
	t.begin()
	n := 0
	for n < len(ops) && t.size() < groupBytes {
		op := ops[n]
		n++
		if op.err = op.ctx.Err(); op.err == nil {
			op.err = t.run(op.run)
		}
	}
	g := group{ops: append([]*operation(nil), ops[:n]...)}
	g.batch = s.commit(t)
	return g, n
}

// commit applies what is left of a transaction. It returns a batch whose sync has to be waited for,
// or nil.
func (s *Store) commit(t *txn) *pebble.Batch {
	t.finish()
	b, err := t.take()
	switch {
	case err != nil:
		s.guard.fail(err)
		return nil
	case b == nil:
		return nil
	}
	sync := t.durable && !s.relaxed
	if err := s.apply(b, sync); err != nil {
		s.guard.fail(err)
		return nil
	}
	if !sync {
		_ = b.Close()
		return nil
	}
	return b
}

// apply hands a batch to Pebble without waiting for the disk. Pebble panics where its log is broken.
func (s *Store) apply(b *pebble.Batch, sync bool) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", storage.ErrUnavailable, r)
		}
	}()
	if err := s.guard.failure(); err != nil {
		return err
	}
	if sync {
		return s.db.ApplyNoSyncWait(b, pebble.Sync)
	}
	return s.db.Apply(b, pebble.NoSync)
}

// answer waits for the sync of a group and answers its operations.
func (s *Store) answer(g group) {
	if g.batch != nil {
		if err := g.batch.SyncWait(); err != nil {
			s.guard.fail(err)
		} else {
			_ = g.batch.Close()
		}
	}
	failure := s.guard.failure()
	for _, op := range g.ops {
		if failure != nil {
			op.err = diskError(failure)
		}
		close(op.done)
	}
}
