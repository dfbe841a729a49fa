// SPDX-License-Identifier: Apache-2.0

package bide_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/storage"
)

var orderPaid = bide.NewTopic[order]("order.paid")

func (f *faulty) Topic(ctx context.Context, topic string, e storage.TopicEdit) ([]string, error) {
	after, err := f.begin(ctx, bound, len(e.Bind)+len(e.Unbind))
	if err != nil {
		return nil, err
	}
	queues, err := f.Engine.Topic(ctx, topic, e)
	if lost := after(); lost != nil {
		return nil, lost
	}
	return queues, err
}

// picky is an engine on which one queue can be made to fail.
type picky struct {
	*faulty
	mu   sync.Mutex
	bad  string
	err  error
	sent map[string]int // enqueue calls by queue
}

func (p *picky) Enqueue(ctx context.Context, now time.Time, queue string, recs []storage.Record) ([]storage.EnqueueResult, error) {
	p.mu.Lock()
	p.sent[queue]++
	bad, err := p.bad == queue, p.err
	p.mu.Unlock()
	if bad {
		return nil, err
	}
	return p.faulty.Enqueue(ctx, now, queue, recs)
}

func (p *picky) fail(queue string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bad, p.err = queue, err
}

func outcomes(p bide.Published) map[string]storage.Outcome {
	all := map[string]storage.Outcome{}
	for _, q := range p.Queues {
		all[q.Queue] = q.Outcome
	}
	return all
}

func bind(t *testing.T, client *bide.Client, queues ...string) {
	t.Helper()
	_, err := client.Bind(t.Context(), orderPaid.Name(), queues...)
	assert.NoError(t, err)
}

// What is published goes into every queue under one id.
func TestPublish(t *testing.T) {
	bubble(t, func(t *testing.T, engine *faulty, client *bide.Client) {
		none, err := orderPaid.Publish(t.Context(), client, order{Number: "0"})
		assert.NoError(t, err)
		assert.True(t, none.ID != "" && len(none.Queues) == 0, "nobody subscribes")
		bind(t, client, "stock", "mail")
		p, err := orderPaid.Publish(t.Context(), client, order{Number: "1"}, bide.In(time.Minute), bide.Header("a", "b"))
		assert.NoError(t, err)
		assert.Equal(t, slices.Sorted(maps.Keys(outcomes(p))), []string{"mail", "stock"})
		for _, q := range p.Queues {
			assert.Equal(t, q.ID, p.ID)
			r, err := client.Get(t.Context(), q.Queue, p.ID)
			assert.NoError(t, err)
			assert.Equal(t, []any{r.Headers, r.DedupFor, r.Due.Sub(r.Enqueued), string(r.Body)},
				[]any{map[string]string{"a": "b"}, 2 * time.Minute, time.Minute, `{"Number":"1","Cents":0}`})
		}
		named, err := orderPaid.Publish(t.Context(), client, order{}, bide.ID("order-1"), bide.DedupFor(time.Hour))
		assert.NoError(t, err)
		assert.Equal(t, named.ID, "order-1")
		r, err := client.Get(t.Context(), "mail", "order-1")
		assert.NoError(t, err)
		assert.Equal(t, r.DedupFor, time.Hour)
		assert.Equal(t, len(engine.calls(bound)), 3, "bindings are read once: before Bind, by Bind, and after it")
	})
}

// While one queue cannot be reached, that one is repeated and no other. A Publish that is repeated
// after an error stores what is missing, and nothing twice, even where a subscriber was done already.
func TestPublishRepeatsWhatIsMissing(t *testing.T) {
	bubble(t, func(t *testing.T, engine *faulty, _ *bide.Client) {
		p := &picky{faulty: engine, sent: map[string]int{}}
		client := bide.NewClient(p, bide.ClientConfig{Logger: quiet()})
		defer func() { assert.NoError(t, client.Close(t.Context())) }()
		bind(t, client, "a", "b", "c")
		p.fail("b", storage.ErrUnavailable)
		time.AfterFunc(3*time.Second, func() { p.fail("", nil) })
		first, err := orderPaid.Publish(t.Context(), client, order{}, bide.ID("1"))
		assert.NoError(t, err)
		assert.Equal(t, outcomes(first), map[string]storage.Outcome{"a": storage.Stored, "b": storage.Stored, "c": storage.Stored})
		p.mu.Lock()
		assert.True(t, p.sent["a"] == 1 && p.sent["c"] == 1 && p.sent["b"] > 2, p.sent)
		p.mu.Unlock()

		p.fail("b", errors.New("broken"))
		half, err := orderPaid.Publish(t.Context(), client, order{}, bide.ID("2"))
		assert.True(t, err != nil, "no error")
		assert.Equal(t, outcomes(half), map[string]storage.Outcome{"a": storage.Stored, "b": storage.Refused, "c": storage.Stored})
		consumer := bide.NewConsumer(client, bide.ConsumerConfig{})
		consumer.Handle("a", func(context.Context, *bide.Delivery[[]byte]) error { return nil })
		stop := start(t, consumer)
		pass(time.Second)
		assert.NoError(t, stop())

		p.fail("", nil)
		whole, err := orderPaid.Publish(t.Context(), client, order{}, bide.ID(half.ID))
		assert.NoError(t, err)
		assert.Equal(t, outcomes(whole), map[string]storage.Outcome{"a": storage.Duplicate, "b": storage.Stored, "c": storage.Duplicate})
	})
}

// Producers notice within a second what is bound and unbound elsewhere, and a client at once what it
// does itself.
func TestProducersNoticeBindingsWithinASecond(t *testing.T) {
	bubble(t, func(t *testing.T, engine *faulty, client *bide.Client) {
		elsewhere := bide.NewClient(engine, bide.ClientConfig{Logger: quiet()})
		defer func() { assert.NoError(t, elsewhere.Close(t.Context())) }()
		reaches := func() []string {
			p, err := orderPaid.Publish(t.Context(), client, order{})
			assert.NoError(t, err)
			return slices.Sorted(maps.Keys(outcomes(p)))
		}
		assert.Equal(t, reaches(), []string{})
		bind(t, elsewhere, "a")
		pass(time.Second)
		assert.Equal(t, reaches(), []string{"a"})
		bind(t, client, "b")
		assert.Equal(t, reaches(), []string{"a", "b"})
		pass(500 * time.Millisecond)
		_, err := elsewhere.Unbind(t.Context(), orderPaid.Name(), "a")
		assert.NoError(t, err)
		pass(500 * time.Millisecond)
		assert.Equal(t, reaches(), []string{"b"})
		before := len(engine.calls(bound))
		for range 100 {
			reaches()
		}
		assert.Equal(t, len(engine.calls(bound)), before)
	})
}

// Bindings that cannot be read are asked for again, and nothing is published without them.
func TestPublishWithoutBindings(t *testing.T) {
	bubble(t, func(t *testing.T, engine *faulty, client *bide.Client) {
		bind(t, client, "a")
		engine.loses(bound, 3)
		p, err := orderPaid.Publish(t.Context(), client, order{})
		assert.NoError(t, err)
		assert.Equal(t, len(p.Queues), 1)
		pass(time.Second)
		engine.fails(bound, storage.ErrUnavailable)
		p, err = orderPaid.Publish(t.Context(), client, order{})
		assert.ErrorIs(t, err, bide.ErrUnavailable)
		assert.True(t, p.ID != "" && len(p.Queues) == 0)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = orderPaid.Publish(ctx, client, order{})
		assert.ErrorIs(t, err, context.Canceled)
	})
}

// Each subscriber retries by itself.
func TestSubscribersRetryByThemselves(t *testing.T) {
	bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) {
		bind(t, client, "mail", "stock", "coupons")
		attempts := map[string][]int{}
		var mu sync.Mutex
		consumer := bide.NewConsumer(client, bide.ConsumerConfig{})
		for _, queue := range []string{"mail", "stock", "coupons"} {
			bide.NewQueue[order](queue).Handle(consumer, func(_ context.Context, d *bide.Delivery[order]) error {
				mu.Lock()
				defer mu.Unlock()
				attempts[queue] = append(attempts[queue], d.Attempt)
				if queue == "stock" && d.Attempt < 3 {
					return errors.New("the store is closed")
				}
				return nil
			})
		}
		stop := start(t, consumer)
		_, err := orderPaid.Publish(t.Context(), client, order{Number: "1"})
		assert.NoError(t, err)
		pass(time.Hour)
		assert.NoError(t, stop())
		assert.Equal(t, attempts, map[string][]int{"mail": {1}, "stock": {1, 2, 3}, "coupons": {1}})
	})
}

func TestTopicsAreListed(t *testing.T) {
	bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) {
		for _, topic := range []string{"b", "a", "c"} {
			queues, err := client.Bind(t.Context(), topic, "q", "p")
			assert.NoError(t, err)
			assert.Equal(t, queues, []string{"p", "q"})
		}
		queues, err := client.Unbind(t.Context(), "b", "p", "q")
		assert.NoError(t, err)
		assert.Equal(t, queues, nil)
		var names []string
		for name, err := range client.Topics(t.Context()) {
			assert.NoError(t, err)
			names = append(names, name)
		}
		assert.Equal(t, names, []string{"a", "c"})
		queues, err = client.Bindings(t.Context(), "a")
		assert.NoError(t, err)
		assert.Equal(t, queues, []string{"p", "q"})
		_, err = client.Bind(t.Context(), "no topic", "q")
		assert.ErrorIs(t, err, bide.ErrInvalid)
	})
}
