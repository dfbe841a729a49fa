// SPDX-License-Identifier: Apache-2.0

package bide

import (
	"context"
	"errors"
	"fmt"

	"github.com/bidemq/bide/storage"
)

// The categories of failure, as engines report them. Decide with errors.Is.
var (
	// ErrInvalid: the arguments can never work. Nothing was changed.
	ErrInvalid = storage.ErrInvalid
	// ErrTooLarge: a body is over the engine's limit.
	ErrTooLarge = storage.ErrTooLarge
	// ErrExpired: the message is past its expiry already.
	ErrExpired = storage.ErrExpired
	// ErrNotFound: there is no such message.
	ErrNotFound = storage.ErrNotFound
	// ErrConflict: the message is in a state that refuses this, leased or dead say.
	ErrConflict = storage.ErrConflict
	// ErrLeaseLost: somebody else may have the message. It is also the cause that ends the context
	// of a handler whose lease is lost.
	ErrLeaseLost = storage.ErrLeaseLost
	// ErrFull: there is no room for the message; later there may be.
	ErrFull = storage.ErrFull
	// ErrUnavailable: the engine cannot be reached, or is failing over.
	ErrUnavailable = storage.ErrUnavailable
	// ErrFormat: what is stored was written by another version, or is damaged.
	ErrFormat = storage.ErrFormat
	// ErrClosed: used after Close.
	ErrClosed = storage.ErrClosed
)

// Failures of this package.
var (
	// ErrUnknown: the call was sent and nobody knows whether it took effect, see [UnknownError].
	ErrUnknown = errors.New("outcome unknown")
	// ErrShutdown is the cause that ends the context of a handler that outlasts the drain.
	ErrShutdown = errors.New("consumer is shutting down")
	// ErrTimeout is the cause that ends the context of a handler that outlasts
	// [ConsumerConfig.Timeout].
	ErrTimeout = errors.New("handler timed out")
	// ErrGoexit: a handler ended its goroutine with runtime.Goexit, t.FailNow in a test say.
	ErrGoexit = errors.New("handler called runtime.Goexit")
	// ErrDecode: the body of a message is not what its queue's codec reads.
	ErrDecode = errors.New("body does not decode")
)

// UnknownError says that a call was sent and its answer was lost, by a broken connection or because
// the caller's context ended first. The call may have taken effect or not. Enqueueing again under
// the same ID does no harm: while the first message lives, it is reported as a duplicate. Settling
// again does none either, but reports the lease as lost if the first call was heard.
//
// errors.Is matches it with [ErrUnknown] and with its cause.
type UnknownError struct {
	Queue string
	ID    string // of the message, made by the client if the caller gave none
	Err   error  // why the answer did not come
}

// Error tells the message and the cause.
func (e *UnknownError) Error() string {
	return fmt.Sprintf("bide: %q %q: %v: %v", e.Queue, e.ID, ErrUnknown, e.Err)
}

// Unwrap returns ErrUnknown and the cause.
func (e *UnknownError) Unwrap() []error { return []error{ErrUnknown, e.Err} }

// PanicError is a panic of a handler, or of what decides about its outcome: the error that it
// returned, or the consumer's Backoff. The message is retried like after any other error. A panic of
// a Codec that decodes stands behind [ErrDecode].
type PanicError struct {
	Value any    // what was passed to panic
	Stack []byte // of the handler's goroutine
}

// Error tells the value, without the stack.
func (e *PanicError) Error() string { return fmt.Sprintf("handler panicked: %v", e.Value) }

// Unwrap returns the value if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// wrap adds the operation to an engine's error. Context errors pass through untouched.
func wrap(err error, op, queue string) error {
	if err == nil || isContext(err) {
		return err
	}
	return fmt.Errorf("bide: %s %q: %w", op, queue, err)
}

func wrapID(err error, op, queue, id string) error {
	if err == nil || isContext(err) {
		return err
	}
	return fmt.Errorf("bide: %s %q %q: %w", op, queue, id, err)
}

func isContext(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
