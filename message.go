// SPDX-License-Identifier: Apache-2.0

package bide

import (
	"fmt"
	"time"

	"github.com/bidemq/bide/storage"
)

// Bounds of attempts, for [Message.MaxAttempts].
const (
	DefaultMaxAttempts = 25 // attempts of a message that says nothing else; about three days with the default backoff
	Unlimited          = -1 // attempts without end
)

// Message is what a producer says about one message. Its zero value is an empty message, due now.
// Body and Headers are not to be changed while a call is under way that sends them, which one that
// ended with [ErrUnknown] still is.
type Message struct {
	ID          string            // names the message in its queue; "" lets the client make a sortable unique one
	Key         string            // group that the message belongs to, "" is none
	Priority    int               // 0 to 9, 9 is handed out first
	Body        []byte            // with the headers at most the engine's limit, 1 MiB unless it was opened with another
	Headers     map[string]string // passed through
	Due         time.Time         // handed out from then on; zero or past is now
	Delay       time.Duration     // instead of Due: from now on, by the engine's clock; negative or over 50 years is ErrInvalid
	ExpireIn    time.Duration     // dropped if it was not handed out this long after its due time; 0 is the queue's, which is never unless configured
	MaxAttempts int               // attempts before it is dead; 0 is DefaultMaxAttempts, Unlimited is no limit
	DedupFor    time.Duration     // how long after the ack the ID stays taken; 0 frees it with the ack
	OnLive      storage.OnLive    // what an ID that is waiting or running means: storage.Keep the old one, Replace, or Rerun
}

// record translates m for an engine.
func (m *Message) record() (storage.Record, error) {
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
	ID      string          // also set beside an error, so that the message can be enqueued again under it
	Outcome storage.Outcome // Stored, Duplicate, Replaced or Reran; Refused if there is an error
	Due     time.Time       // of the message stored, or of the one that stands in the way; zero if neither is
	Err     error           // why it was not stored, nil otherwise; what Enqueue returns
}
