// SPDX-License-Identifier: Apache-2.0

package bide

import (
	"context"
	"sync"
	"time"
)

// handling is the context of a handler. It is made of others only when somebody asks for more than
// whether it has ended: handlers that take microseconds seldom do, and a context of the standard
// library costs as much as all else that the consumer does for them.
type handling struct {
	parent context.Context

	mu     sync.Mutex
	made   context.Context // nil until somebody asks
	cancel context.CancelCauseFunc
	ended  bool
	cause  error
}

// end ends the context. Of several causes the first counts.
func (h *handling) end(cause error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended {
		return
	}
	h.ended, h.cause = true, cause
	switch {
	case h.made != nil:
		h.cancel(cause)
	case h.parent.Err() != nil: // which came first
		h.cause = context.Cause(h.parent)
	}
}

// full returns the context that can be waited for.
func (h *handling) full() context.Context {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.made != nil {
		return h.made
	}
	parent := h.parent
	if h.ended {
		parent = context.WithoutCancel(parent) // whose end does not count any more
	}
	h.made, h.cancel = context.WithCancelCause(parent)
	if h.ended {
		h.cancel(h.cause)
	}
	return h.made
}

// Err implements [context.Context].
func (h *handling) Err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.made != nil:
		return h.made.Err()
	case h.ended:
		return context.Canceled
	}
	return h.parent.Err()
}

// Deadline implements [context.Context].
func (h *handling) Deadline() (time.Time, bool) { return h.parent.Deadline() }

// Done implements [context.Context].
func (h *handling) Done() <-chan struct{} { return h.full().Done() }

// Value implements [context.Context].
func (h *handling) Value(key any) any { return h.full().Value(key) }
