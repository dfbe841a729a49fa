// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"strconv"
	"testing"
	"time"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/internal/redistest"
	"github.com/bidemq/bide/storage"
	"github.com/bidemq/bide/storage/storagetest"
)

// A process that knows an older layout does nothing by it, whatever it calls.
func TestOldLayoutDoesNothing(t *testing.T) {
	t.Parallel()
	url := redistest.Shared(t).URL()
	fresh := openQuiet(t, url)
	for name, call := range map[string]func(t *testing.T, old *Store, queue string){
		"enqueue": func(t *testing.T, old *Store, queue string) {
			for i := range 40 { // what has moved stays away from its old home
				put(t, fresh, queue, storage.Record{ID: "moved" + strconv.Itoa(i)})
			}
			for i := range 40 {
				again := put(t, old, queue, storage.Record{ID: "moved" + strconv.Itoa(i)})
				assert.Equal(t, again[0].Outcome, storage.Duplicate)
			}
			for i := range 40 {
				put(t, old, queue, storage.Record{ID: "new" + strconv.Itoa(i)})
				again := put(t, fresh, queue, storage.Record{ID: "new" + strconv.Itoa(i)})
				assert.Equal(t, again[0].Outcome, storage.Duplicate)
			}
			for i := range 40 { // the old ones stay where they are, and are known there
				r := put(t, old, queue, storage.Record{ID: strconv.Itoa(i)})
				assert.Equal(t, r[0].Outcome, storage.Duplicate)
			}
		},
		"claim": func(t *testing.T, old *Store, queue string) {
			assert.Equal(t, len(take(t, old, queue, 100)), 40)
		},
		"get": func(t *testing.T, old *Store, queue string) {
			for i := range 40 {
				_, err := old.Get(t.Context(), time.Time{}, queue, strconv.Itoa(i))
				assert.NoError(t, err)
			}
		},
		"cancel": func(t *testing.T, old *Store, queue string) {
			for i := range 40 {
				assert.NoError(t, old.Cancel(t.Context(), time.Time{}, queue, strconv.Itoa(i), false))
			}
		},
		"list": func(t *testing.T, old *Store, queue string) {
			p, err := old.List(t.Context(), time.Time{}, queue, storage.Filter{State: storage.Ready, Limit: 100})
			assert.NoError(t, err)
			assert.Equal(t, len(p.Records), 40)
		},
		"stats": func(t *testing.T, old *Store, queue string) {
			st, err := old.Stats(t.Context(), time.Time{}, queue)
			assert.NoError(t, err)
			assert.Equal(t, st.Ready, 40)
		},
		"settle": func(t *testing.T, old *Store, queue string) {
			var ss []storage.Settlement
			for _, r := range take(t, fresh, queue, 100) {
				ss = append(ss, storage.Settlement{Receipt: r.Receipt(queue), Verdict: storage.Ack})
			}
			assert.Equal(t, len(ss), 40)
			lost, err := old.Settle(t.Context(), time.Time{}, ss)
			assert.NoError(t, err)
			assert.Equal(t, len(lost), 0)
			lost, err = old.Settle(t.Context(), time.Time{}, ss)
			assert.NoError(t, err)
			assert.Equal(t, len(lost), 40)
		},
		"pause": func(t *testing.T, old *Store, queue string) {
			c, err := old.Configure(t.Context(), queue, storage.ConfigEdit{Paused: new(true)})
			assert.NoError(t, err)
			assert.True(t, c.Paused && c.Shards > 1)
			assert.Equal(t, len(take(t, fresh, queue, 100)), 0) // R15
		},
	} {
		for _, from := range []int{1, 2, 4} {
			t.Run(name+strconv.Itoa(from), func(t *testing.T) {
				old, queue := openQuiet(t, url), storagetest.NewQueueName()
				for i := range 40 {
					put(t, old, queue, storage.Record{ID: strconv.Itoa(i), Key: []string{"", "k" + strconv.Itoa(i)}[i%2]}, storage.Record{ID: "gone"})
				}
				assert.NoError(t, old.Cancel(t.Context(), time.Time{}, queue, "gone", false))
				if from > 1 {
					_, err := old.Configure(t.Context(), queue, storage.ConfigEdit{Shards: &from})
					assert.NoError(t, err)
				}
				_, err := fresh.Configure(t.Context(), queue, storage.ConfigEdit{Shards: new(7)})
				assert.NoError(t, err)
				call(t, old, queue)
			})
		}
	}
}

// A receipt is good in every process, though only that which has claimed knows the shard. R5
func TestSettlesWhatAnotherProcessHasClaimed(t *testing.T) {
	t.Parallel()
	url := redistest.Shared(t).URL()
	claimer, other := openQuiet(t, url), openQuiet(t, url)
	queue := spreadQueue(t, claimer, 5, storage.ConfigEdit{})
	var rs []storage.Receipt
	for i := range 100 {
		put(t, claimer, queue, storage.Record{ID: strconv.Itoa(i), Key: "k" + strconv.Itoa(i%30)})
	}
	for len(rs) < 100 {
		for _, r := range take(t, claimer, queue, 100) {
			rs = append(rs, r.Receipt(queue))
		}
	}
	lost, err := other.Extend(t.Context(), time.Time{}, time.Hour, rs)
	assert.NoError(t, err)
	assert.Equal(t, len(lost), 0)
	ss := make([]storage.Settlement, 0, 101)
	for _, r := range rs {
		ss = append(ss, storage.Settlement{Receipt: r, Verdict: storage.Ack})
	}
	ss = append(ss, ss[7]) // twice: the second is lost
	lost, err = other.Settle(t.Context(), time.Time{}, ss)
	assert.NoError(t, err)
	assert.Equal(t, lost, rs[7:8])
	lost, err = claimer.Settle(t.Context(), time.Time{}, ss[:100])
	assert.NoError(t, err)
	assert.Equal(t, len(lost), 100)
}
