// SPDX-License-Identifier: Apache-2.0

package bide_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/memstore"
	"github.com/bidemq/bide/storage"
)

// events of a game; the body is the sequence.
var events = bide.NewQueue[int]("events")

func putEvents(t *testing.T, client *bide.Client, game string, from, n int) {
	t.Helper()
	for i := range n {
		_, err := events.Enqueue(t.Context(), client, from+i, bide.ID(fmt.Sprint(game, from+i)), bide.Key(game))
		assert.NoError(t, err)
	}
}

// show is a batch in a few letters.
func show(key string, ds []*bide.Delivery[int]) string {
	var ids []string
	for _, d := range ds {
		ids = append(ids, d.ID)
	}
	return key + ": " + strings.Join(ids, " ")
}

func TestBatchesAreOfOneKey(t *testing.T) {
	bubble(t, func(t *testing.T, engine *faulty, client *bide.Client) {
		putEvents(t, client, "a", 0, 5)
		putEvents(t, client, "b", 0, 2)
		putEvents(t, client, "", 0, 2)
		var got []string
		consumer := bide.NewConsumer(client, bide.ConsumerConfig{Concurrency: 1})
		events.HandleBatch(consumer, func(_ context.Context, key string, ds []*bide.Delivery[int]) error {
			got = append(got, show(key, ds))
			return nil
		}, bide.BatchConfig{Max: 3})
		stop := start(t, consumer)
		pass(time.Second)
		assert.NoError(t, stop())
		assert.Equal(t, got, []string{"a: a0 a1 a2", "b: b0 b1", ": 0 1", "a: a3 a4"})
		assert.Equal(t, eventsTotal(t, client), storage.Counters{Enqueued: 9, Claimed: 9, Acked: 9})
		assert.True(t, len(engine.calls(settle)) <= 4, "a batch is settled in one call", engine.calls(settle))
	})
}

func eventsTotal(t *testing.T, client *bide.Client) storage.Counters {
	t.Helper()
	st, err := client.Stats(t.Context(), events.Name())
	assert.NoError(t, err)
	return storage.Counters{
		Enqueued: st.Total.Enqueued, Claimed: st.Total.Claimed, Acked: st.Total.Acked, Retried: st.Total.Retried,
		Released: st.Total.Released, Died: st.Total.Died, Expired: st.Total.Expired, Lapsed: st.Total.Lapsed,
	}
}

func TestMixedBatches(t *testing.T) {
	bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) {
		putEvents(t, client, "a", 0, 3)
		putEvents(t, client, "b", 0, 1)
		var got []string
		consumer := bide.NewConsumer(client, bide.ConsumerConfig{Concurrency: 1})
		events.HandleBatch(consumer, func(_ context.Context, key string, ds []*bide.Delivery[int]) error {
			got = append(got, show(key, ds))
			return nil
		}, bide.BatchConfig{Mixed: true})
		stop := start(t, consumer)
		pass(time.Second)
		assert.NoError(t, stop())
		assert.Equal(t, got, []string{": a0 b0 a1 a2"})
	})
}

// A batch comes when there are enough, or when the first has waited long enough, and nobody holds a
// lease until then.
func TestBatchesWaitForMore(t *testing.T) {
	bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) {
		begun := time.Now()
		var got notes
		consumer := bide.NewConsumer(client, bide.ConsumerConfig{})
		events.HandleBatch(consumer, func(_ context.Context, key string, ds []*bide.Delivery[int]) error {
			got.add("%s %s", time.Since(begun), show(key, ds))
			return nil
		}, bide.BatchConfig{Min: 3, Linger: time.Minute})
		stop := start(t, consumer)
		pass(time.Second)
		putEvents(t, client, "few", 0, 2)
		pass(time.Second)
		assert.Equal(t, eventsTotal(t, client).Claimed, int64(0))
		putEvents(t, client, "many", 0, 3)
		pass(time.Second)
		assert.Equal(t, got.all(), []string{"2s many: many0 many1 many2"})
		pass(time.Hour)
		assert.NoError(t, stop())
		assert.Equal(t, got.all()[1:], []string{"1m1s few: few0 few1"})
	})
}

// Each delivery of a batch can have an outcome of its own, also where the handler fails.
func TestOutcomesInsideABatch(t *testing.T) {
	bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) {
		putEvents(t, client, "k", 0, 5)
		_, err := client.Enqueue(t.Context(), "events", bide.Message{ID: "nonsense", Key: "k", Body: []byte("{")})
		assert.NoError(t, err)
		var got notes
		consumer := bide.NewConsumer(client, bide.ConsumerConfig{Logger: quiet(), Hooks: bide.Hooks{
			OnDone: func(d *bide.Delivery[[]byte], done bide.Done) {
				got.add("%s %s %s %v", d.ID, done.Verdict, done.Delay, done.Settle)
			},
		}})
		var once atomic.Bool
		events.HandleBatch(consumer, func(_ context.Context, _ string, ds []*bide.Delivery[int]) error {
			if once.Swap(true) {
				return nil
			}
			ds[0].Decide(errors.New("overruled"))
			ds[0].Decide(nil)
			ds[1].Decide(bide.Snooze(time.Hour))
			ds[2].Decide(bide.DeadLetter(errors.New("hopeless")))
			ds[3].Decide(bide.RetryIn(2*time.Hour, errors.New("later")))
			return []error{}[len(ds)] // panics, and the fifth is left with that
		}, bide.BatchConfig{})
		stop := start(t, consumer)
		pass(time.Second)
		ends := slices.Sorted(slices.Values(got.all()))
		assert.Equal(t, ends[:4], []string{"k0 ack 0s <nil>", "k1 release 1h0m0s <nil>", "k2 bury 0s <nil>", "k3 retry 2h0m0s <nil>"})
		assert.True(t, strings.HasPrefix(ends[4], "k4 retry"), ends[4])
		assert.Equal(t, ends[5], "nonsense bury 0s <nil>")
		pass(24 * time.Hour)
		assert.NoError(t, stop())
		assert.Equal(t, eventsTotal(t, client), storage.Counters{Enqueued: 6, Claimed: 9, Acked: 4, Retried: 2, Released: 1, Died: 2})
	})
}

// R11: in an ordered queue what follows a delivery that comes again comes again too, and is no alarm.
func TestOrderedBatchIsGivenBack(t *testing.T) {
	bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) {
		_, err := client.Configure(t.Context(), "events", storage.ConfigEdit{Ordered: new(true)})
		assert.NoError(t, err)
		putEvents(t, client, "k", 0, 4)
		var got, ends []string
		consumer := bide.NewConsumer(client, bide.ConsumerConfig{Logger: quiet(), Hooks: bide.Hooks{
			OnDone: func(d *bide.Delivery[[]byte], done bide.Done) {
				ends = append(ends, fmt.Sprintf("%s %s %v", d.ID, done.Verdict, done.Settle))
			},
			OnLeaseLost: func(*bide.Delivery[[]byte]) { t.Error("a lease was lost") },
		}})
		events.HandleBatch(consumer, func(_ context.Context, key string, ds []*bide.Delivery[int]) error {
			got = append(got, show(key, ds))
			if len(got) == 1 {
				ds[1].Decide(bide.RetryIn(time.Minute, errors.New("not yet")))
			}
			return nil
		}, bide.BatchConfig{})
		stop := start(t, consumer)
		pass(time.Hour)
		assert.NoError(t, stop())
		assert.Equal(t, got, []string{"k: k0 k1 k2 k3", "k: k1 k2 k3"})
		assert.Equal(t, ends[:4], []string{"k0 ack <nil>", "k1 retry <nil>", "k2 release <nil>", "k3 release <nil>"})
		assert.Equal(t, eventsTotal(t, client), storage.Counters{Enqueued: 4, Claimed: 7, Acked: 4, Retried: 1, Released: 2})
	})
}

// The leases of a batch are kept together, and a lost one ends the handler's context.
func TestLeasesOfABatch(t *testing.T) {
	bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) {
		putEvents(t, client, "k", 0, 3)
		consumer := bide.NewConsumer(client, bide.ConsumerConfig{Logger: quiet(), Lease: 10 * time.Second})
		causes := make(chan error, 1)
		events.HandleBatch(consumer, func(ctx context.Context, _ string, ds []*bide.Delivery[int]) error {
			if ds[0].Deliveries > 1 {
				return nil
			}
			pass(time.Minute) // six leases long
			assert.NoError(t, client.Cancel(context.WithoutCancel(ctx), "events", "k1", bide.Running))
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return ctx.Err()
		}, bide.BatchConfig{})
		stop := start(t, consumer)
		assert.ErrorIs(t, <-causes, bide.ErrLeaseLost)
		pass(time.Hour)
		assert.NoError(t, stop())
		assert.Equal(t, eventsTotal(t, client), storage.Counters{Enqueued: 3, Claimed: 5, Acked: 2, Retried: 2})
	})
}

// What was claimed and not begun is given back whole, and what has expired is not begun.
func TestBatchAtShutdown(t *testing.T) {
	bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) {
		putEvents(t, client, "k", 0, 2)
		consumer := bide.NewConsumer(client, bide.ConsumerConfig{Logger: quiet(), DrainTimeout: -1})
		began := make(chan struct{})
		events.HandleBatch(consumer, func(ctx context.Context, _ string, _ []*bide.Delivery[int]) error {
			close(began)
			<-ctx.Done()
			assert.ErrorIs(t, context.Cause(ctx), bide.ErrShutdown)
			return ctx.Err()
		}, bide.BatchConfig{})
		stop := start(t, consumer)
		<-began
		assert.NoError(t, stop())
		assert.Equal(t, eventsTotal(t, client), storage.Counters{Enqueued: 2, Claimed: 2, Released: 2})
		r, err := client.Get(t.Context(), "events", "k0")
		assert.NoError(t, err)
		assert.Equal(t, []any{r.State, r.Attempts}, []any{storage.Ready, 0})
	})
}

// Parts of a queue have handlers of their own, in one consumer and in several.
func TestPartsOfAQueue(t *testing.T) {
	bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) {
		var hot, rest []string
		consumer := bide.NewConsumer(client, bide.ConsumerConfig{Queues: map[string]int{"events": 2}})
		events.Only("hot").Handle(consumer, func(_ context.Context, d *bide.Delivery[int]) error {
			hot = append(hot, d.ID)
			return nil
		})
		events.Except("hot").HandleBatch(consumer, func(_ context.Context, key string, ds []*bide.Delivery[int]) error {
			rest = append(rest, show(key, ds))
			return nil
		}, bide.BatchConfig{})
		stop := start(t, consumer)
		for i := range 3 {
			pass(time.Hour)
			putEvents(t, client, "hot", i, 1)
			putEvents(t, client, "cold", i, 1)
		}
		pass(time.Second)
		assert.NoError(t, stop())
		assert.Equal(t, hot, []string{"hot0", "hot1", "hot2"})
		assert.Equal(t, rest, []string{"cold: cold0", "cold: cold1", "cold: cold2"})
	})
}

// Middleware sees a batch as its first delivery, and may fail all of it.
func TestMiddlewareOfBatches(t *testing.T) {
	bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) {
		putEvents(t, client, "k", 0, 2)
		consumer := bide.NewConsumer(client, bide.ConsumerConfig{Logger: quiet()})
		seen := 0
		events.HandleBatch(consumer, func(context.Context, string, []*bide.Delivery[int]) error { return nil }, bide.BatchConfig{},
			func(next bide.Handler) bide.Handler {
				return func(ctx context.Context, d *bide.Delivery[[]byte]) error {
					seen++
					assert.Equal(t, d.ID, "k0")
					if seen == 1 {
						return bide.Snooze(time.Minute)
					}
					return next(ctx, d)
				}
			})
		stop := start(t, consumer)
		pass(time.Hour)
		assert.NoError(t, stop())
		assert.Equal(t, eventsTotal(t, client), storage.Counters{Enqueued: 2, Claimed: 4, Acked: 2, Released: 2})
	})
}

func TestBatchMisuse(t *testing.T) {
	client := bide.NewClient(memstore.New(memstore.Options{}), bide.ClientConfig{})
	handler := func(context.Context, string, []*bide.Delivery[int]) error { return nil }
	for name, config := range map[string]bide.BatchConfig{
		"negative max": {Max: -1}, "max too large": {Max: storage.MaxBatch + 1}, "min above max": {Max: 2, Min: 3, Linger: time.Second},
		"min without linger": {Min: 2}, "linger without min": {Linger: time.Second}, "negative linger": {Min: 2, Linger: -1},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() { assert.True(t, recover() != nil, "it should have panicked") }()
			events.HandleBatch(bide.NewConsumer(client, bide.ConsumerConfig{}), handler, config)
		})
	}
}
