// SPDX-License-Identifier: Apache-2.0

package bide

import (
	"errors"
	"fmt"
	"time"

	"github.com/bidemq/bide/storage"
)

// Snooze is returned by a handler that cannot do its work yet: the message is due again after d,
// and no attempt is spent. It may be wrapped or joined with other errors, whose text is then kept
// with the message; where several outcomes meet, DeadLetter wins over RetryIn, and RetryIn over
// Snooze.
func Snooze(d time.Duration) error { return &snoozeError{d} }

// RetryIn is returned by a handler that failed and knows when to try again: the attempt is spent
// and the message is due again after d, or dead if that was its last attempt.
func RetryIn(d time.Duration, err error) error { return &retryError{d, err} }

// DeadLetter is returned by a handler that knows that no further attempt can work: the message is
// dead for the given reason, until it is redriven or purged.
func DeadLetter(err error) error { return &deadError{err} }

type snoozeError struct{ delay time.Duration }

func (e *snoozeError) Error() string { return fmt.Sprintf("snooze for %s", e.delay) }

type retryError struct {
	delay time.Duration
	err   error
}

func (e *retryError) Error() string { return reasonOr(e.err, "retry") }
func (e *retryError) Unwrap() error { return e.err }

type deadError struct{ err error }

func (e *deadError) Error() string { return reasonOr(e.err, "dead letter") }
func (e *deadError) Unwrap() error { return e.err }

func reasonOr(err error, otherwise string) string {
	if err == nil {
		return otherwise
	}
	return err.Error()
}

// settlement says how a delivery ends whose handler returned err. It has no receipt.
func settlement(err error, attempt int, backoff Backoff) storage.Settlement {
	if err == nil {
		return storage.Settlement{Verdict: storage.Ack}
	}
	if dead, ok := errors.AsType[*deadError](err); ok && dead != nil {
		return storage.Settlement{Verdict: storage.Bury, Reason: err.Error()}
	}
	if retry, ok := errors.AsType[*retryError](err); ok && retry != nil {
		return storage.Settlement{Verdict: storage.Retry, Delay: clamp(retry.delay), Reason: err.Error()}
	}
	if snooze, ok := errors.AsType[*snoozeError](err); ok && snooze != nil {
		s := storage.Settlement{Verdict: storage.Release, Delay: clamp(snooze.delay)}
		if text := err.Error(); text != snooze.Error() { // somebody added a reason
			s.Reason = text
		}
		return s
	}
	return storage.Settlement{Verdict: storage.Retry, Delay: clamp(backoff(attempt)), Reason: err.Error()}
}

// decided says whether a handler chose the outcome itself.
func decided(err error) bool {
	if err == nil {
		return true
	}
	s := settlement(err, 1, func(int) time.Duration { return -1 })
	_, retry := errors.AsType[*retryError](err)
	return s.Verdict != storage.Retry || retry
}

// clamp brings a delay into the bounds of engines.
func clamp(d time.Duration) time.Duration { return min(max(d, 0), storage.MaxDelay) }
