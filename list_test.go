// SPDX-License-Identifier: Apache-2.0

package bide_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/memstore"
	"github.com/bidemq/bide/storage"
)

// slowList is an engine that takes its time to list.
type slowList struct {
	storage.Engine
	takes time.Duration
}

func (s slowList) List(ctx context.Context, now time.Time, queue string, f storage.Filter) (storage.Page, error) {
	p, err := s.Engine.List(ctx, now, queue, f)
	pass(s.takes)
	return p, err
}

// schedule enqueues a message for every delay, named m000, m001 and so on.
func schedule(t *testing.T, client *bide.Client, n int, delay func(i int) time.Duration) []string {
	t.Helper()
	ms, ids := make([]bide.Message, n), make([]string, n)
	for i := range ms {
		ids[i] = fmt.Sprintf("m%03d", i)
		ms[i] = bide.Message{ID: ids[i], Delay: delay(i)}
	}
	_, err := client.EnqueueMany(t.Context(), "orders", ms)
	assert.NoError(t, err)
	return ids
}

func idsOf(t *testing.T, client *bide.Client, f storage.Filter) []string {
	t.Helper()
	var ids []string
	for r, err := range client.Messages(t.Context(), "orders", f) {
		assert.NoError(t, err)
		ids = append(ids, r.ID)
	}
	return ids
}

func backwards(ids []string) []string {
	ids = slices.Clone(ids)
	slices.Reverse(ids)
	return ids
}

// What waits is one list by due time, ready or not, in both directions.
func TestWaitingIsListedByDueTime(t *testing.T) {
	bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) {
		ids := schedule(t, client, 450, func(i int) time.Duration { return time.Duration(i) * time.Minute })
		pass(220 * time.Minute)
		assert.Equal(t, idsOf(t, client, storage.Filter{State: bide.Waiting}), ids)
		assert.Equal(t, idsOf(t, client, storage.Filter{State: bide.Waiting, Desc: true}), backwards(ids))
		assert.Equal(t, idsOf(t, client, storage.Filter{State: bide.Waiting, Limit: 300}), ids[:300])
		assert.Equal(t, idsOf(t, client, storage.Filter{State: bide.Waiting, Limit: 300, Desc: true}), backwards(ids[150:]))

		now := time.Now()
		around := storage.Filter{State: bide.Waiting, From: now.Add(-10 * time.Minute), To: now.Add(10 * time.Minute)}
		assert.Equal(t, idsOf(t, client, around), ids[210:230])
		around.Desc = true
		assert.Equal(t, idsOf(t, client, around), backwards(ids[210:230]))
		for r, err := range client.Messages(t.Context(), "orders", storage.Filter{State: bide.Waiting}) {
			assert.NoError(t, err)
			assert.Equal(t, r.ID, ids[0])
			break
		}
	})
}

// A message that becomes due while a listing of what waits is under way is neither missed nor
// listed twice.
func TestNothingIsMissedThatBecomesDueDuringAListing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := slowList{memstore.New(memstore.Options{}), 777 * time.Millisecond}
		client := bide.NewClient(engine, bide.ClientConfig{Logger: quiet()})
		ids := schedule(t, client, 900, func(i int) time.Duration { return time.Duration(i/3) * 30 * time.Millisecond })
		pass(time.Second)
		assert.Equal(t, idsOf(t, client, storage.Filter{State: bide.Waiting, Desc: true}), backwards(ids))
		assert.Equal(t, idsOf(t, client, storage.Filter{State: bide.Waiting}), ids)
		assert.NoError(t, client.Close(t.Context()))
	})
}

func TestCount(t *testing.T) {
	bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) {
		schedule(t, client, 250, func(i int) time.Duration { return time.Duration(i) * time.Minute })
		pass(100 * time.Minute)
		held, err := client.Claim(t.Context(), "orders", bide.ClaimOptions{Limit: 3, Lease: time.Hour})
		assert.NoError(t, err)
		assert.NoError(t, held[0].Bury(t.Context(), nil))
		now := time.Now()
		for want, f := range map[int64]storage.Filter{
			247: {State: bide.Waiting},
			98:  {State: storage.Ready},
			149: {State: storage.Delayed},
			2:   {State: storage.Leased},
			1:   {State: storage.Dead},
			0:   {State: storage.Done},
			21:  {State: bide.Waiting, From: now.Add(-10 * time.Minute), To: now.Add(11 * time.Minute)},
			240: {State: bide.Waiting, Limit: 240},
		} {
			n, err := client.Count(t.Context(), "orders", f)
			assert.NoError(t, err)
			assert.Equal(t, n, want, f)
		}
		_, err = client.Count(t.Context(), "orders", storage.Filter{})
		assert.ErrorIs(t, err, bide.ErrInvalid)
		_, err = client.Count(t.Context(), "no good", storage.Filter{State: bide.Waiting})
		assert.ErrorIs(t, err, bide.ErrInvalid)
	})
}

// The end of a queue that is used as a log is read in the order of the log.
func TestLast(t *testing.T) {
	bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) {
		ids := schedule(t, client, 250, func(int) time.Duration { return 0 })
		last := func(f storage.Filter, n int) (found []string) {
			records, err := client.Last(t.Context(), "orders", f, n)
			assert.NoError(t, err)
			for _, r := range records {
				found = append(found, r.ID)
			}
			return found
		}
		assert.Equal(t, last(storage.Filter{State: bide.Waiting}, 10), ids[240:])
		assert.Equal(t, last(storage.Filter{State: storage.Ready}, 1000), ids)
		assert.Equal(t, last(storage.Filter{State: bide.Waiting, Desc: true}, 2), []string{ids[1], ids[0]})
		for n, f := range map[int]storage.Filter{0: {State: bide.Waiting}, -1: {State: bide.Waiting}, 5: {State: bide.Waiting, Limit: 5}, 6: {}} {
			_, err := client.Last(t.Context(), "orders", f, n)
			assert.ErrorIs(t, err, bide.ErrInvalid, n)
		}
	})
}

// A range that ends before it begins is a mistake everywhere, and nothing is done.
func TestRangesThatEndBeforeTheyBegin(t *testing.T) {
	bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) {
		put(t, client, "a")
		now := time.Now()
		for _, state := range []storage.State{bide.Waiting, storage.Ready, storage.Dead} {
			f := storage.Filter{State: state, From: now, To: now.Add(-time.Second)}
			_, err := client.Count(t.Context(), "orders", f)
			assert.ErrorIs(t, err, bide.ErrInvalid)
			_, err = client.Purge(t.Context(), "orders", f)
			assert.ErrorIs(t, err, bide.ErrInvalid)
			_, err = client.PurgeRanks(t.Context(), "orders", f, 0, 1)
			assert.ErrorIs(t, err, bide.ErrInvalid)
		}
		_, err := client.Redrive(t.Context(), "orders", storage.Filter{From: now, To: now.Add(-time.Second)})
		assert.ErrorIs(t, err, bide.ErrInvalid)
		assert.Equal(t, idsOf(t, client, storage.Filter{State: bide.Waiting, From: now, To: now}), nil)
		assert.Equal(t, idsOf(t, client, storage.Filter{State: bide.Waiting}), []string{"a"})
	})
}
