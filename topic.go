// SPDX-License-Identifier: Apache-2.0

package bide

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/bidemq/bide/storage"
)

// Topic ties the name of a topic to the type of its payload. What is published to it goes into every
// queue that is bound to it ([Client.Bind]), as a message of its own: each subscriber has its queue,
// and retries by itself. It is meant to be a package variable, and may be used from many goroutines.
type Topic[T any] struct {
	queue *Queue[T] // lends its codec and its defaults
}

// NewTopic returns the topic of a name, which is made like that of a queue. It panics on any other.
// The queues bound to it are to have the same payload.
func NewTopic[T any](name string) *Topic[T] { return NewTopicWith(name, QueueOptions[T]{}) }

// NewTopicWith is NewTopic with options.
func NewTopicWith[T any](name string, o QueueOptions[T]) *Topic[T] {
	return &Topic[T]{NewQueueWith(name, o)}
}

// Name of the topic.
func (t *Topic[T]) Name() string { return t.queue.name }

// Publish enqueues a payload into every queue that is bound to the topic; see [Client.Publish].
func (t *Topic[T]) Publish(ctx context.Context, c *Client, body T, opts ...Option) (Published, error) {
	m, err := t.queue.Message(body, opts...)
	if err != nil {
		id := c.idOf(&m)
		return Published{ID: id}, wrapID(err, "publish", t.Name(), id)
	}
	return c.Publish(ctx, t.Name(), m)
}

// publishedFor is how long the id of a published message stays taken in a queue after its ack, so
// that a repeat is harmless where a subscriber was faster.
const publishedFor = 2 * time.Minute

// Published says what became of one message that was published.
type Published struct {
	// ID is that of the message in each queue, and is also set beside an error, so that the message
	// can be published again under it.
	ID string
	// Queues has a result for each queue that was bound, in the order of their names. It is empty if
	// none was.
	Queues []PublishedTo
}

// PublishedTo is what became of the message in one queue.
type PublishedTo struct {
	Queue string
	Result
}

// Publish enqueues a message into every queue that is bound to a topic, under one id: m.ID, or one
// that the client makes. A topic without bindings takes the message and drops it: nobody subscribes.
// What was bound or unbound elsewhere within the last second may not have come to notice.
//
// Each queue answers for itself, and is repeated like an Enqueue while the engine is unavailable. A
// nil error means that all of them have the message. After an error some may have it: publishing it
// again under Published.ID stores it in the others, and in no queue twice while it lives there and
// for m.DedupFor after its ack, two minutes unless m says otherwise.
func (c *Client) Publish(ctx context.Context, topic string, m Message) (Published, error) {
	p := Published{ID: c.idOf(&m)}
	m.ID = p.ID
	if m.DedupFor == 0 {
		m.DedupFor = publishedFor
	}
	queues, err := c.bound(ctx, topic)
	if err != nil {
		return p, wrapID(err, "publish", topic, p.ID)
	}
	p.Queues = make([]PublishedTo, len(queues))
	var wg sync.WaitGroup
	for i, queue := range queues {
		wg.Go(func() {
			r, _ := c.Enqueue(ctx, queue, m) // the error is in the result
			p.Queues[i] = PublishedTo{Queue: queue, Result: r}
		})
	}
	wg.Wait()
	return p, p.failure(topic)
}

// failure is the error of the first queue that failed.
func (p *Published) failure(topic string) error {
	var first error
	failed := 0
	for _, q := range p.Queues {
		if q.Err != nil {
			failed++
			if first == nil {
				first = q.Err
			}
		}
	}
	switch {
	case first == nil:
		return nil
	case isContext(first):
		return first
	}
	return fmt.Errorf("bide: publish %q %q: %d of %d queues failed, the first with: %w", topic, p.ID, failed, len(p.Queues), first)
}

// Bind lets queues have what is published to a topic, and returns all that are bound to it then,
// sorted. Queues and topic need no making. Messages published before do not come. ErrFull means that
// there would be more than storage.MaxBindings. Publishers elsewhere notice within a second.
func (c *Client) Bind(ctx context.Context, topic string, queues ...string) ([]string, error) {
	return c.editTopic(ctx, "bind", topic, storage.TopicEdit{Bind: queues})
}

// Unbind is the reverse of Bind. What the queues have already stays.
func (c *Client) Unbind(ctx context.Context, topic string, queues ...string) ([]string, error) {
	return c.editTopic(ctx, "unbind", topic, storage.TopicEdit{Unbind: queues})
}

// Bindings lists the queues that are bound to a topic, sorted; none if there is no such topic.
func (c *Client) Bindings(ctx context.Context, topic string) ([]string, error) {
	return c.editTopic(ctx, "bindings of", topic, storage.TopicEdit{})
}

func (c *Client) editTopic(ctx context.Context, op, topic string, e storage.TopicEdit) ([]string, error) {
	queues, err := c.engine.Topic(ctx, topic, e)
	if !e.Empty() {
		c.topics.forget(topic)
	}
	return queues, wrap(err, op, topic)
}

// Topics lists the names of all topics that have bindings, in order. The loop ends with the first
// error.
func (c *Client) Topics(ctx context.Context) iter.Seq2[string, error] {
	const page = 100
	return func(yield func(string, error) bool) {
		after := ""
		for {
			names, err := c.engine.Topics(ctx, after, page)
			if err != nil {
				yield("", wrap(err, "topics after", after))
				return
			}
			for _, name := range names {
				if !yield(name, nil) {
					return
				}
			}
			if len(names) < page {
				return
			}
			after = names[len(names)-1]
		}
	}
}
