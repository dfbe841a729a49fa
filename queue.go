// SPDX-License-Identifier: Apache-2.0

package bide

import (
	"context"
	"iter"
	"slices"

	"github.com/bidemq/bide/storage"
)

// Queue ties the name of a queue to the type of its payload. It is meant to be a package variable
// that producers and consumers share, and may be used from many goroutines.
//
// Payloads are JSON, but a Queue[[]byte] stores its bytes as they are.
type Queue[T any] struct {
	name     string
	codec    Codec[T]
	defaults []Option
}

// QueueOptions of a Queue. The zero value is what NewQueue uses.
type QueueOptions[T any] struct {
	Codec    Codec[T] // of the payload; nil is JSON, or nothing at all for []byte
	Defaults []Option // applied to every message before its own options
}

// NewQueue returns the queue of a name: 1 to 128 letters, digits, dots, dashes, underscores and
// colons, beginning with a letter or a digit. It panics on any other.
func NewQueue[T any](name string) *Queue[T] { return NewQueueWith(name, QueueOptions[T]{}) }

// NewQueueWith is NewQueue with options.
func NewQueueWith[T any](name string, o QueueOptions[T]) *Queue[T] {
	if err := storage.CheckQueue(name); err != nil {
		misuse("%v", err)
	}
	for _, opt := range o.Defaults {
		if opt == nil {
			misuse("queue %q has a nil Option among its defaults", name)
		}
	}
	if o.Codec == nil {
		o.Codec = defaultCodec[T]()
	}
	return &Queue[T]{name: name, codec: o.Codec, defaults: o.Defaults}
}

// Name of the queue.
func (q *Queue[T]) Name() string { return q.name }

// Message makes a message of a payload, for [Client.EnqueueMany] and for tests. ErrInvalid means
// that the payload does not encode, or that an option is nil.
func (q *Queue[T]) Message(body T, opts ...Option) (Message, error) {
	var m Message
	for _, o := range slices.Concat(q.defaults, opts) {
		if o == nil {
			return m, errNilOption()
		}
		m.edit(o)
	}
	b, err := encode(q.codec, body)
	m.Body = b
	return m, err
}

// Decode reads the body of a message of this queue. ErrDecode means that it is none.
func (q *Queue[T]) Decode(body []byte) (T, error) { return decode(q.codec, body) }

// Enqueue stores a message; see [Client.Enqueue] for what its result and its error mean.
func (q *Queue[T]) Enqueue(ctx context.Context, c *Client, body T, opts ...Option) (Result, error) {
	m, err := q.Message(body, opts...)
	if err != nil {
		id := c.idOf(&m)
		return c.answered(q.name, &m, Result{ID: id, Err: wrapID(err, "enqueue", q.name, id)})
	}
	return c.Enqueue(ctx, q.name, m)
}

// EnqueueMany stores a message for each payload; see [Client.EnqueueMany]. The function edits the
// message of each, to give it an ID or a due time, and may be nil. As with options, a due time that
// it sets takes the place of a delay that the message has from the queue's defaults, and the
// reverse.
func (q *Queue[T]) EnqueueMany(ctx context.Context, c *Client, bodies []T, edit func(body T, m *Message)) ([]Result, error) {
	ms := make([]Message, len(bodies))
	errs := make([]error, len(bodies))
	results := make([]Result, len(bodies))
	for i, body := range bodies {
		ms[i], errs[i] = q.Message(body)
		if edit != nil {
			ms[i].edit(func(m *Message) { edit(body, m) })
		}
	}
	c.enqueueMany(ctx, q.name, ms, errs, results)
	return results, firstError(results, q.name)
}

// Cancel removes a message, see [Client.Cancel].
func (q *Queue[T]) Cancel(ctx context.Context, c *Client, id string, mode ...CancelMode) error {
	return c.Cancel(ctx, q.name, id, mode...)
}

// Reschedule changes when a waiting message is due, see [Client.Reschedule].
func (q *Queue[T]) Reschedule(ctx context.Context, c *Client, id string, when Option) error {
	return c.Reschedule(ctx, q.name, id, when)
}

// Edit gives a waiting message another payload, see [Client.Edit].
func (q *Queue[T]) Edit(ctx context.Context, c *Client, id string, body T) error {
	b, err := encode(q.codec, body)
	if err == nil {
		_, err = c.Edit(ctx, q.name, id, storage.Edit{Body: &b})
		return err
	}
	return wrapID(err, "edit", q.name, id)
}

// Stored is a message as it lies in its queue.
type Stored[T any] struct {
	Body T
	storage.Record
}

// Get returns the message that an id means: the one that waits or runs, else the latest finished one.
// ErrNotFound means that there is none, ErrDecode that its body does not decode; the record is
// there then.
func (q *Queue[T]) Get(ctx context.Context, c *Client, id string) (Stored[T], error) {
	r, err := c.Get(ctx, q.name, id)
	if err != nil {
		return Stored[T]{}, err
	}
	return q.stored(r)
}

func (q *Queue[T]) stored(r storage.Record) (Stored[T], error) {
	body, err := decode(q.codec, r.Body)
	return Stored[T]{Body: body, Record: r}, wrapID(err, "decode", q.name, r.ID)
}

// Messages lists the messages of one state, see [Client.Messages]. A message whose body does not
// decode comes with ErrDecode, and the listing goes on after it; any other error ends it.
func (q *Queue[T]) Messages(ctx context.Context, c *Client, state storage.State) iter.Seq2[Stored[T], error] {
	return func(yield func(Stored[T], error) bool) {
		for r, err := range c.Messages(ctx, q.name, storage.Filter{State: state}) {
			if err != nil {
				yield(Stored[T]{}, err)
				return
			}
			if !yield(q.stored(r)) {
				return
			}
		}
	}
}

// Handle makes a consumer run h for every message of the queue. A message whose body does not
// decode is dead at once. It panics if the handler is nil, the queue has one there already, or the
// consumer is running. The middleware listed first is the outermost.
func (q *Queue[T]) Handle(c *Consumer, h func(ctx context.Context, d *Delivery[T]) error, wraps ...Middleware) {
	q.Except().Handle(c, h, wraps...)
}

// HandleBatch makes a consumer run h for batches of messages, see [BatchConfig]. Messages whose
// bodies do not decode are dead at once and not in the batch. Otherwise it is like Handle.
func (q *Queue[T]) HandleBatch(
	c *Consumer,
	h func(ctx context.Context, key string, ds []*Delivery[T]) error,
	config BatchConfig,
	wraps ...Middleware,
) {
	q.Except().HandleBatch(c, h, config, wraps...)
}
