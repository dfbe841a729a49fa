// SPDX-License-Identifier: Apache-2.0

package bide_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/storage"
)

// Consumers take batches from an ordered queue, and their handlers fail at random: each key is worked
// off in order all the same, by one handler at a time, and by the consumer that asked for it.
func TestOrderedBatchesOnEveryEngine(t *testing.T) {
	const keys, each, most = 12, 25, 8
	seed := uint64(time.Now().UnixNano())
	onEveryEngine(t, func(t *testing.T, client *bide.Client) {
		t.Logf("seed %d", seed)
		_, err := client.Configure(t.Context(), "events", storage.ConfigEdit{Ordered: new(true)})
		assert.NoError(t, err)
		ms := make([]bide.Message, keys*each)
		for i := range ms {
			ms[i], err = events.Message(i/keys, bide.Key(fmt.Sprint("k", i%keys)), bide.MaxAttempts(bide.Unlimited))
			assert.NoError(t, err)
		}
		_, err = client.EnqueueMany(t.Context(), "events", ms)
		assert.NoError(t, err)

		var mu sync.Mutex // guards what follows
		random := rand.New(rand.NewPCG(seed, 0))
		next := map[string]int{} // what is to be acknowledged, by key
		busy := map[string]bool{}
		left := len(ms)
		done := make(chan struct{})
		handler := func(hot bool) func(context.Context, string, []*bide.Delivery[int]) error {
			return func(_ context.Context, key string, ds []*bide.Delivery[int]) error {
				mu.Lock()
				if busy[key] || len(ds) > most || hot != (key == "k0") {
					t.Errorf("a batch of %d of %s, busy %t, hot %t", len(ds), key, busy[key], hot)
				}
				busy[key] = true
				again := random.IntN(2 * len(ds)) // from this one on
				mu.Unlock()
				pass(time.Millisecond)
				mu.Lock()
				defer mu.Unlock()
				busy[key] = false
				for i, d := range ds {
					if d.Key != key || d.Body != next[key]+i {
						t.Errorf("%s: %d of %s stands at place %d, after %d", key, d.Body, d.Key, i, next[key])
					}
					if i == again {
						d.Decide(bide.RetryIn(time.Millisecond, errors.New("not yet")))
					}
				}
				acked := min(again, len(ds))
				next[key] += acked
				if left -= acked; left == 0 {
					close(done)
				}
				return nil
			}
		}
		var stops []func() error
		for i := range 3 {
			consumer := bide.NewConsumer(client, bide.ConsumerConfig{Concurrency: 4, Logger: quiet()})
			if i == 0 {
				events.Only("k0").HandleBatch(consumer, handler(true), bide.BatchConfig{Max: most})
			} else {
				events.Except("k0").HandleBatch(consumer, handler(false), bide.BatchConfig{Max: most})
			}
			stops = append(stops, start(t, consumer))
		}
		select {
		case <-done:
		case <-time.After(time.Minute):
			t.Error("not everything was handled")
		}
		for _, stop := range stops {
			assert.NoError(t, stop())
		}
		st, err := client.Stats(t.Context(), "events")
		assert.NoError(t, err)
		assert.Equal(t, []int64{st.Total.Acked, st.Total.Lapsed, st.Total.Died, st.Keys}, []int64{keys * each, 0, 0, 0})
		addsUp(t, client, "events")
	})
}

// Batches wait for enough, or for the first to have waited long enough, by the clock of the engine.
func TestBatchesWaitOnEveryEngine(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, client *bide.Client) {
		const linger = 300 * time.Millisecond
		got := make(chan string, 10)
		consumer := bide.NewConsumer(client, bide.ConsumerConfig{Logger: quiet()})
		events.HandleBatch(consumer, func(_ context.Context, key string, ds []*bide.Delivery[int]) error {
			late := ds[0].Claimed.Sub(ds[0].Enqueued)
			got <- fmt.Sprintf("%s %t", show(key, ds), late >= linger)
			return nil
		}, bide.BatchConfig{Min: 3, Linger: linger})
		stop := start(t, consumer)
		waitFor(t, func() bool {
			c, err := client.Configure(t.Context(), "events", storage.ConfigEdit{})
			return err == nil && c.MinBatch == 3
		})
		putEvents(t, client, "few", 0, 2)
		putEvents(t, client, "many", 0, 3)
		assert.Equal(t, <-got, "many: many0 many1 many2 false")
		assert.Equal(t, <-got, "few: few0 few1 true")
		assert.NoError(t, stop())
	})
}

// A death is told once, with what led to it, whichever engine keeps it.
func TestOnDeadOnEveryEngine(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, client *bide.Client) {
		dead := make(chan bide.Dead, 10)
		tell := func(_ context.Context, d bide.Dead) error {
			dead <- d
			return nil
		}
		var stops []func() error
		for range 2 {
			stops = append(stops, start(t, dying(client, bide.ConsumerConfig{
				Name: "one", OnDead: tell, OnDeadEvery: 50 * time.Millisecond,
				Backoff: func(int) time.Duration { return time.Millisecond },
			})))
		}
		put(t, client, "fails", bide.MaxAttempts(2), bide.Key("k"))
		d := <-dead
		assert.Equal(t, []any{d.ID, d.Key, d.Reason, d.Attempts, len(d.History)}, []any{"fails", "k", "boom", 2, 2})
		assert.Equal(t, []any{d.History[1].Delivery, d.History[1].By, d.History[1].Reason}, []any{2, "one", "boom"})
		put(t, client, "hopeless")
		assert.Equal(t, (<-dead).Reason, "no such account")
		waitFor(t, func() bool {
			n, err := client.Count(t.Context(), "orders", storage.Filter{State: storage.Dead, Untold: true})
			return err == nil && n == 0
		})
		for _, stop := range stops {
			assert.NoError(t, stop())
		}
		assert.Equal(t, len(dead), 0)
	})
}

// waitFor waits for a condition on real time.
func waitFor(t *testing.T, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !ok(); pass(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("waited in vain")
		}
	}
}
