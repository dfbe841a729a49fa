// SPDX-License-Identifier: Apache-2.0

package bide

import (
	"context"
	"runtime/debug"
)

// Handler does what a message asks for, once per attempt. Nil acks it; the error may be one of
// [Snooze], [RetryIn] and [DeadLetter]; any other error, a panic, or the end of the goroutine
// retries it after the consumer's backoff.
//
// ctx ends when the lease is lost (cause ErrLeaseLost: somebody else may have the message), when
// the consumer's Timeout is over (ErrTimeout), and when the consumer has to stop (ErrShutdown:
// unless the handler decides otherwise, the message is given back and no attempt is spent).
type Handler func(ctx context.Context, d *Delivery[[]byte]) error

// Middleware wraps handlers, to measure, to trace, to limit. It sees every delivery of a queue with
// its body undecoded, and the outcome.
type Middleware func(Handler) Handler

// guard runs a handler and always calls done, with what came of it: also when the handler panics,
// and when it ends its goroutine.
func guard(ctx context.Context, h Handler, d *Delivery[[]byte], done func(error)) {
	err := ErrGoexit
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
		done(err)
	}()
	err = h(ctx, d)
}
