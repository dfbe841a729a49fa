// SPDX-License-Identifier: Apache-2.0

package pebblestore

import (
	"context"
	"sync"

	"github.com/bidemq/bide/storage"
)

// operation is one call on its way through the writer.
type operation struct {
	ctx  context.Context
	run  func(t *txn) error
	err  error
	done chan struct{} // closed when the call may be answered
}

// inbox collects the operations that arrive while the writer is busy, so that they travel together.
type inbox struct {
	mu      sync.Mutex
	waiting []*operation
	filled  chan struct{} // holds a value while waiting may not be empty
}

func newInbox() inbox { return inbox{filled: make(chan struct{}, 1)} }

func (in *inbox) put(op *operation) {
	in.mu.Lock()
	in.waiting = append(in.waiting, op)
	first := len(in.waiting) == 1
	in.mu.Unlock()
	if first {
		select {
		case in.filled <- struct{}{}:
		default:
		}
	}
}

// take returns all operations in the order of their arrival. The slice that it is given is used for
// those to come.
func (in *inbox) take(empty []*operation) []*operation {
	in.mu.Lock()
	defer in.mu.Unlock()
	ops := in.waiting
	in.waiting = empty
	return ops
}

// do lets the writer run a function, and returns when what it did is as durable as was asked for.
// The function may still run after do returned with an error, so it owns what it uses.
func (s *Store) do(ctx context.Context, run func(t *txn) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.isClosed() {
		return storage.ErrClosed
	}
	if err := s.guard.failure(); err != nil {
		return diskError(err)
	}
	op := &operation{ctx: ctx, run: run, done: make(chan struct{})}
	s.inbox.put(op)
	select {
	case <-op.done:
		return op.err
	case <-ctx.Done():
		return ctx.Err()
	case <-s.closed:
		return storage.ErrClosed
	case <-s.guard.frozen:
		return diskError(s.guard.failure())
	}
}

func (s *Store) isClosed() bool {
	select {
	case <-s.closed:
		return true
	default:
		return false
	}
}

// check is what every call on a queue checks first.
func check(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
