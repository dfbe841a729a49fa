// SPDX-License-Identifier: Apache-2.0

package pebblestore

import (
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/storage"
)

// A claim does not look at the remains of what was claimed before it, and they do not pile up.
func TestHeadStaysClean(t *testing.T) {
	const total = 30_000
	store := openTest(t, Options{Relaxed: true}, vfs.NewMem())
	fill(t, store, total)
	drain(t, store, total)
	places := 0
	err := store.do(t.Context(), func(x *txn) error {
		all := waitingPrefix("drain", 0)
		return x.scan(all, after(all), func(*pebble.Iterator) (bool, error) {
			places++
			return true, nil
		})
	})
	assert.NoError(t, err)
	assert.True(t, places <= voidPlaces+storage.MaxBatch, places)
}

// What was claimed below the bound does not come back when records come below it, few or many, and when
// the store is opened again.
func TestVoidPlacesAreCleared(t *testing.T) {
	for _, claimed := range []int{1, fewVoid, fewVoid + 1, 3 * fewVoid} {
		disk := vfs.NewMem()
		store, err := open("dir", Options{}, disk)
		assert.NoError(t, err)
		recs := make([]storage.Record, claimed+1)
		for i := range recs {
			recs[i] = storage.Record{ID: fmt.Sprint("late", i), Due: time.UnixMilli(1_700_000_000_000)}
		}
		_, err = store.Enqueue(t.Context(), time.Time{}, "q", recs)
		assert.NoError(t, err)
		got, err := store.Claim(t.Context(), time.Time{}, storage.Claim{Queue: "q", Limit: claimed, Lease: time.Hour})
		assert.NoError(t, err)
		assert.Equal(t, len(got.Records), claimed)
		_, err = store.Enqueue(t.Context(), time.Time{}, "q", []storage.Record{{ID: "early", Due: time.UnixMilli(1_600_000_000_000)}})
		assert.NoError(t, err)
		assert.NoError(t, store.Close())
		store = openTest(t, Options{}, disk)
		got, err = store.Claim(t.Context(), time.Time{}, storage.Claim{Queue: "q", Limit: storage.MaxBatch, Lease: time.Hour})
		assert.NoError(t, err)
		var ids []string
		for _, r := range got.Records {
			ids = append(ids, r.ID)
		}
		assert.Equal(t, ids, []string{"early", fmt.Sprint("late", claimed)})
	}
}

// A record that comes before the bound, because it was due earlier, does not bring back what was
// claimed there.
func TestBeforeTheBound(t *testing.T) {
	disk := vfs.NewMem()
	store, err := open("dir", Options{}, disk)
	assert.NoError(t, err)
	now := time.UnixMilli(1_700_000_000_000)
	claim := func() []string {
		t.Helper()
		got, err := store.Claim(t.Context(), now, storage.Claim{Queue: "q", Limit: 3, Lease: time.Hour})
		assert.NoError(t, err)
		var ids []string
		for _, r := range got.Records {
			ids = append(ids, r.ID)
			_, err := store.Settle(t.Context(), now, []storage.Settlement{{Receipt: r.Receipt("q"), Verdict: storage.Ack}})
			assert.NoError(t, err)
		}
		return ids
	}
	enqueue := func(ids ...string) {
		t.Helper()
		for i, id := range ids {
			_, err := store.Enqueue(t.Context(), now, "q", []storage.Record{{ID: id, Due: now.Add(time.Duration(i-100) * time.Second)}})
			assert.NoError(t, err)
		}
	}
	enqueue("a", "b", "c", "d", "e")
	assert.Equal(t, claim(), []string{"a", "b", "c"})
	enqueue("f")
	assert.Equal(t, claim(), []string{"f", "d", "e"})
	enqueue("g", "h")
	assert.NoError(t, store.Close()) // what is remembered of the bound is on disk
	store = openTest(t, Options{}, disk)
	enqueue("i")
	assert.Equal(t, claim(), []string{"g", "i", "h"})
	assert.Equal(t, claim(), nil)
}
