// SPDX-License-Identifier: Apache-2.0

package bide

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/bidemq/bide/storage"
)

const (
	// boundFor is how long bindings that were read are relied on.
	boundFor = time.Second
	// manyTopics is when what is too old is thrown out.
	manyTopics = 1000
)

// topicCache remembers bindings, so that publishing costs no reading of them each time.
type topicCache struct {
	mu    sync.Mutex
	known map[string]*boundTopic
}

// boundTopic is what is known about one topic.
type boundTopic struct {
	turn chan struct{} // holds a value while somebody reads; guards the rest

	queues []string
	until  time.Time
}

// of returns the entry of a topic.
func (t *topicCache) of(topic string) *boundTopic {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.known[topic]
	if b == nil {
		if t.known == nil || len(t.known) >= manyTopics {
			t.known = map[string]*boundTopic{}
		}
		b = &boundTopic{turn: make(chan struct{}, 1)}
		t.known[topic] = b
	}
	return b
}

// forget lets the next Publish read the bindings again.
func (t *topicCache) forget(topic string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.known, topic)
}

// bound returns the queues that are bound to a topic, as they were a second ago or later. Those who
// ask while somebody reads get what he gets. The slice is not to be changed.
func (c *Client) bound(ctx context.Context, topic string) ([]string, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	b := c.topics.of(topic)
	select {
	case b.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-b.turn }()
	began := time.Now()
	if began.Before(b.until) {
		return b.queues, nil
	}
	for tries := 1; ; tries++ {
		sent := time.Now()
		var queues []string
		err := bounded(ctx, callPatience, func(ctx context.Context) (err error) {
			queues, err = c.engine.Topic(ctx, topic, storage.TopicEdit{})
			return err
		})
		if err == nil {
			b.queues, b.until = queues, sent.Add(boundFor)
			return queues, nil
		}
		left := c.config.RepeatFor - time.Since(began)
		if !errors.Is(err, ErrUnavailable) || left <= 0 || sleep(ctx, min(left, repeatAfter(tries))) != nil {
			return nil, err
		}
	}
}
