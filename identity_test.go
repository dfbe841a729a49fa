// SPDX-License-Identifier: Apache-2.0

package bide_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/storage"
)

// identity is the table of the contract: what enqueueing an id says, by what the id is.
var identity = map[string]map[storage.OnLive]storage.Outcome{
	"delayed":   {storage.Keep: storage.Duplicate, storage.Replace: storage.Replaced, storage.Rerun: storage.Duplicate},
	"ready":     {storage.Keep: storage.Duplicate, storage.Replace: storage.Replaced, storage.Rerun: storage.Duplicate},
	"leased":    {storage.Keep: storage.Duplicate, storage.Replace: storage.Reran, storage.Rerun: storage.Reran},
	"in window": {storage.Keep: storage.Duplicate, storage.Replace: storage.Stored, storage.Rerun: storage.Stored},
	"dead":      {storage.Keep: storage.Stored, storage.Replace: storage.Stored, storage.Rerun: storage.Stored},
	"done":      {storage.Keep: storage.Stored, storage.Replace: storage.Stored, storage.Rerun: storage.Stored},
	"unknown":   {storage.Keep: storage.Stored, storage.Replace: storage.Stored, storage.Rerun: storage.Stored},
}

// setting is what else is in play.
type setting struct {
	key      string
	retain   bool
	bound    storage.ConfigEdit // set when the queue has one message waiting
	drops    bool
	publish  bool
	tellDead bool
}

var settings = map[string]setting{
	"plain":             {},
	"keys":              {key: "k"},
	"retention":         {retain: true, tellDead: true},
	"full, refuses":     {bound: storage.ConfigEdit{MaxLen: new(1)}},
	"full, drops":       {bound: storage.ConfigEdit{MaxLen: new(1), Overflow: new(storage.DropOldest)}, drops: true},
	"key full, refuses": {key: "k", retain: true, bound: storage.ConfigEdit{MaxPerKey: new(1)}},
	"key full, drops":   {key: "k", bound: storage.ConfigEdit{MaxPerKey: new(1), Overflow: new(storage.DropOldest)}, drops: true},
	"topic":             {publish: true},
	"topic, key full":   {publish: true, key: "k", bound: storage.ConfigEdit{MaxPerKey: new(1)}},
}

func (s *setting) isFull() bool { return s.bound != storage.ConfigEdit{} }

// An id means the same whatever else is in play, and the result says what has happened.
func TestIdentityThroughTheFront(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, client *bide.Client) {
		n := 0
		for name, s := range settings {
			for state, outcomes := range identity {
				for onLive, want := range outcomes {
					n++
					queue := bide.NewQueue[string](fmt.Sprintf("identity.%d", n))
					t.Run(fmt.Sprintf("%s/%s/%s", name, state, onLive), func(t *testing.T) {
						identityCase(t, client, queue, s, state, onLive, want)
					})
				}
			}
		}
	})
}

func identityCase(
	t *testing.T, client *bide.Client, queue *bide.Queue[string], s setting,
	state string, onLive storage.OnLive, want storage.Outcome,
) {
	if s.retain || state == "done" {
		_, err := client.Configure(t.Context(), queue.Name(), storage.ConfigEdit{RetainCount: new(10), TellDead: &s.tellDead})
		assert.NoError(t, err)
	}
	held := bring(t, client, queue, s.key, state)
	full := s.isFull()
	if full && state != "delayed" && state != "ready" {
		_, err := queue.Enqueue(t.Context(), client, "filler", bide.ID("filler"), bide.Key(s.key))
		assert.NoError(t, err)
	}
	_, err := client.Configure(t.Context(), queue.Name(), s.bound)
	assert.NoError(t, err)

	r, err := again(t.Context(), client, queue, s, onLive)
	stores := want == storage.Stored
	switch {
	case full && stores && !s.drops:
		assert.ErrorIs(t, err, bide.ErrFull)
		want = storage.Refused
	case full && stores:
		assert.Equal(t, r.Dropped, []string{"filler"})
		assert.NoError(t, err)
	default:
		assert.Equal(t, r.Dropped, []string(nil))
		assert.NoError(t, err)
	}
	assert.Equal(t, []any{r.ID, r.Outcome}, []any{"x", want})

	if held != nil {
		old, err := queue.Get(t.Context(), client, "x")
		assert.NoError(t, err)
		assert.Equal(t, []any{old.Body, old.Successor}, []any{"old", want == storage.Reran})
		assert.NoError(t, held.Ack(t.Context()))
	}
	found, err := queue.Get(t.Context(), client, "x")
	switch {
	case slices.Contains([]storage.Outcome{storage.Stored, storage.Replaced, storage.Reran}, want):
		assert.NoError(t, err)
		assert.Equal(t, []any{found.Body, found.Attempts, found.State}, []any{"new", 0, storage.Ready})
	case err == nil:
		assert.Equal(t, found.Body, "old")
	default:
		assert.ErrorIs(t, err, bide.ErrNotFound)
	}
	addsUp(t, client, queue.Name())
}

// bring makes the id "x" what a state says. It returns the message if somebody is to have it.
func bring(t *testing.T, client *bide.Client, queue *bide.Queue[string], key, state string) *bide.Held {
	t.Helper()
	if state == "unknown" {
		return nil
	}
	opts := []bide.Option{bide.ID("x"), bide.Key(key)}
	switch state {
	case "delayed":
		opts = append(opts, bide.In(time.Hour))
	case "in window":
		opts = append(opts, bide.DedupFor(time.Hour))
	}
	_, err := queue.Enqueue(t.Context(), client, "old", opts...)
	assert.NoError(t, err)
	if state == "delayed" || state == "ready" {
		return nil
	}
	held, err := client.Claim(t.Context(), queue.Name(), bide.ClaimOptions{})
	assert.NoError(t, err)
	assert.Equal(t, len(held), 1)
	switch state {
	case "leased":
		return &held[0]
	case "dead":
		assert.NoError(t, held[0].Bury(t.Context(), errors.New("boom")))
	default:
		assert.NoError(t, held[0].Ack(t.Context()))
	}
	return nil
}

// again enqueues or publishes "x" once more.
func again(ctx context.Context, client *bide.Client, queue *bide.Queue[string], s setting, onLive storage.OnLive) (bide.Result, error) {
	m, err := queue.Message("new", bide.ID("x"), bide.Key(s.key))
	if err != nil {
		return bide.Result{}, err
	}
	m.OnLive = onLive
	if !s.publish {
		return client.Enqueue(ctx, queue.Name(), m)
	}
	if _, err := client.Bind(ctx, queue.Name(), queue.Name()); err != nil {
		return bide.Result{}, err
	}
	p, err := client.Publish(ctx, queue.Name(), m)
	if len(p.Queues) != 1 {
		return bide.Result{}, fmt.Errorf("published to %v: %w", p.Queues, err)
	}
	return p.Queues[0].Result, err
}

// addsUp checks R14.
func addsUp(t *testing.T, client *bide.Client, queue string) {
	t.Helper()
	s, err := client.Stats(t.Context(), queue)
	assert.NoError(t, err)
	n := s.Total
	assert.Equal(t, s.Delayed+s.Ready+s.Leased+s.Dead+s.Done,
		n.Enqueued-n.Replaced-n.Acked-n.Expired-n.Canceled-n.Purged-n.Dropped+n.Retained-n.Trimmed)
}
