// SPDX-License-Identifier: Apache-2.0

package bide

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// callPatience bounds a call of the engine that nothing shorter bounds. It is far beyond what a
// call takes, and short enough that an engine which answers nobody is noticed.
const callPatience = 30 * time.Second

// cutError says that a call was cut off: the engine counts as unavailable then. It does not wrap
// the error of the context, which callers would take for the end of their own.
type cutError struct{ after time.Duration }

func (e *cutError) Error() string {
	return fmt.Sprintf("%v: no answer within %s", ErrUnavailable, e.after)
}
func (e *cutError) Unwrap() error { return ErrUnavailable }

// bounded makes a call of the engine and cuts it off after a time. Like every call whose answer is
// missing, it may have taken effect.
func bounded(ctx context.Context, within time.Duration, call func(context.Context) error) error {
	end := time.Now().Add(within)
	cut, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	err := call(cut)
	// A client of a network may notice the deadline before the context does.
	if at, _ := cut.Deadline(); errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil && at.Equal(end) {
		return &cutError{within}
	}
	return err
}

// noteCut logs a call that was cut off.
func (c *Client) noteCut(ctx context.Context, op, queue string, err error) {
	if _, ok := errors.AsType[*cutError](err); ok {
		c.log.WarnContext(ctx, "the engine does not answer, a call was cut off", "call", op, "queue", queue, "error", err)
	}
}
