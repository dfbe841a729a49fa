// SPDX-License-Identifier: Apache-2.0

package bide

import (
	"fmt"
	"time"

	"github.com/bidemq/bide/storage"
)

// Bounds of attempts, for [Message.MaxAttempts].
const (
	// DefaultMaxAttempts is how often a message is tried that says nothing else: for about three
	// days with the default backoff.
	DefaultMaxAttempts = 25
	// Unlimited is no bound.
	Unlimited = -1
)

// Message is what a producer says about one message. Its zero value is an empty message, due now.
// Body and Headers are not to be changed while a call is under way that sends them, which one that
// ended with [ErrUnknown] still is.
type Message struct {
	// ID names the message in its queue; "" lets the client make a sortable unique one.
	ID string
	// Key is the group that the message belongs to, "" is none.
	Key string
	// Priority is 0 to 9, 9 is handed out first.
	Priority int
	// Body is with the headers at most the engine's limit, 1 MiB unless it was opened with another.
	Body []byte
	// Headers are passed through.
	Headers map[string]string
	// Due is when the message may be handed out; zero or past is now.
	Due time.Time
	// Delay may be set instead of Due: from now on, by the engine's clock. Negative or over fifty
	// years is ErrInvalid.
	Delay time.Duration
	// ExpireIn drops the message if it was not handed out this long after its due time; 0 is the
	// queue's, which is never unless configured.
	ExpireIn time.Duration
	// MaxAttempts bounds the attempts before the message is dead; 0 is DefaultMaxAttempts,
	// Unlimited is no limit.
	MaxAttempts int
	// DedupFor is how long after the ack the ID stays taken; 0 frees it with the ack.
	DedupFor time.Duration
	// OnLive says what an ID that is waiting or running means: storage.Keep the old one, Replace,
	// or Rerun.
	OnLive storage.OnLive
}

// edit calls f. If that changes one of Due and Delay, the other goes.
func (m *Message) edit(f func(*Message)) {
	due, delay := m.Due, m.Delay
	f(m)
	switch {
	case !m.Due.Equal(due) && m.Delay == delay:
		m.Delay = 0
	case m.Delay != delay && m.Due.Equal(due):
		m.Due = time.Time{}
	}
}

// record translates m for an engine.
func (m *Message) record() (storage.Record, error) {
	if m.Delay == untimed {
		return storage.Record{}, fmt.Errorf("%w: the due time is zero", ErrInvalid)
	}
	attempts := m.MaxAttempts
	switch {
	case attempts == 0:
		attempts = DefaultMaxAttempts
	case attempts == Unlimited:
		attempts = 0
	case attempts < 0:
		return storage.Record{}, fmt.Errorf("%w: max attempts %d is negative", ErrInvalid, attempts)
	}
	return storage.Record{
		ID:          m.ID,
		Key:         m.Key,
		Priority:    m.Priority,
		Body:        m.Body,
		Headers:     m.Headers,
		Due:         m.Due,
		Delay:       m.Delay,
		ExpireIn:    m.ExpireIn,
		MaxAttempts: attempts,
		DedupFor:    m.DedupFor,
		OnLive:      m.OnLive,
	}, nil
}

// size is what a record adds to a batch, in bytes.
func size(r *storage.Record) int {
	const rest = 64 // times and numbers
	n := rest + len(r.ID) + len(r.Key) + len(r.Body)
	for name, value := range r.Headers {
		n += len(name) + len(value)
	}
	return n
}

// Result says what became of one message.
type Result struct {
	// ID is also set beside an error, so that the message can be enqueued again under it.
	ID string
	// Outcome is Stored, Duplicate, Replaced or Reran; Refused if there is an error.
	Outcome storage.Outcome
	// Due is that of the message stored, or of the one that stands in the way; zero if neither is.
	Due time.Time
	// Dropped are the ids of the messages that were dropped to make room for this one, in a bounded
	// queue. What an earlier try has dropped whose answer was lost is counted by the queue alone.
	Dropped []string
	// Err is why the message was not stored, nil otherwise; it is what Enqueue returns.
	Err error
}
