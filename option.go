// SPDX-License-Identifier: Apache-2.0

package bide

import (
	"fmt"
	"maps"
	"math"
	"time"

	"github.com/bidemq/bide/storage"
)

// Option edits a message before it is enqueued. Later options win; one that sets only one of Due
// and Delay takes back the other.
type Option func(*Message)

// untimed is the delay of a message that an option gave no time to.
const untimed = time.Duration(math.MinInt64)

func errNilOption() error { return fmt.Errorf("%w: an option is nil", ErrInvalid) }

// In makes the message due after d, by the engine's clock.
func In(d time.Duration) Option {
	return func(m *Message) { m.Delay, m.Due = d, time.Time{} }
}

// At makes the message due at t; a time in the past is now. The zero time is ErrInvalid: it is
// forgotten more often than it is meant.
func At(t time.Time) Option {
	return func(m *Message) {
		m.Due, m.Delay = t, 0
		if t.IsZero() {
			m.Delay = untimed
		}
	}
}

// ID names the message: enqueueing it again while it is waiting or running changes nothing, and it
// can be canceled, edited and rescheduled by it.
func ID(id string) Option {
	return func(m *Message) { m.ID = id }
}

// Key says which group the message belongs to.
func Key(key string) Option {
	return func(m *Message) { m.Key = key }
}

// Priority of the message among those that are due, 0 (the default) to 9 (first).
func Priority(p int) Option {
	return func(m *Message) { m.Priority = p }
}

// MaxAttempts bounds how often the message is tried before it is dead. Without it that is
// [DefaultMaxAttempts]; [Unlimited] lifts the bound.
func MaxAttempts(n int) Option {
	return func(m *Message) { m.MaxAttempts = n }
}

// ExpireIn drops the message if it was not handed out d after its due time.
func ExpireIn(d time.Duration) Option {
	return func(m *Message) { m.ExpireIn = d }
}

// DedupFor keeps the message's ID taken for d after it was acked.
func DedupFor(d time.Duration) Option {
	return func(m *Message) { m.DedupFor = d }
}

// Replace puts the message in the place of a waiting one with its ID, and behind a running one.
func Replace() Option {
	return func(m *Message) { m.OnLive = storage.Replace }
}

// Rerun lets the message follow a running one with its ID; a waiting one stays as it is.
func Rerun() Option {
	return func(m *Message) { m.OnLive = storage.Rerun }
}

// Header adds a header.
func Header(name, value string) Option {
	return func(m *Message) {
		h := maps.Clone(m.Headers) // several messages may have been made from one
		if h == nil {
			h = map[string]string{}
		}
		h[name] = value
		m.Headers = h
	}
}
