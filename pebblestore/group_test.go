// SPDX-License-Identifier: Apache-2.0

package pebblestore

import (
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/storage"
	"github.com/bidemq/bide/storage/storagetest"
)

// manyKeys is more than the keys that are remembered, and than a pass looks at in one call.
const manyKeys = 3 * knownGroups

// fillKeys enqueues one record for each of so many keys in queue q.
func fillKeys(tb testing.TB, s *Store, now time.Time, total int) {
	tb.Helper()
	recs := make([]storage.Record, 500)
	for n := 0; n < total; n += len(recs) {
		recs = recs[:min(len(recs), total-n)]
		for i := range recs {
			recs[i] = storage.Record{ID: fmt.Sprint(n + i), Key: fmt.Sprint("key ", n+i)}
		}
		_, err := s.Enqueue(tb.Context(), now, "q", recs)
		assert.NoError(tb, err)
	}
}

// R3: what is remembered of keys is bounded, in memory only, and forgotten keys keep their turns.
func TestManyKeys(t *testing.T) {
	disk := vfs.NewMem()
	store, err := open("dir", Options{Logger: quiet, Relaxed: true}, disk)
	assert.NoError(t, err)
	now := time.UnixMilli(1_700_000_000_000)
	fillKeys(t, store, now, manyKeys)
	assert.True(t, len(store.queues["q"].groups) <= knownGroups)
	assert.NoError(t, store.Close())
	store = openTest(t, Options{Logger: quiet, Relaxed: true}, disk)
	for n := 0; n < manyKeys; n += 64 {
		got, err := store.Claim(t.Context(), now, storage.Claim{Queue: "q", Limit: 64, Lease: time.Hour})
		assert.NoError(t, err)
		assert.Equal(t, len(got.Records), 64)
		for i, r := range got.Records {
			assert.Equal(t, r.ID, fmt.Sprint(n+i))
		}
	}
	assert.True(t, len(store.queues["q"].groups) <= knownGroups)
	assert.Equal(t, storagetest.RepairAll(t, store, now, "q", 1000, true), nil)
}

// A configuration that changes when keys are claimable reaches all of them, some with every call,
// also if the store is opened again meanwhile.
func TestConfigurationReachesAllKeys(t *testing.T) {
	disk := vfs.NewMem()
	store, err := open("dir", Options{Logger: quiet, Relaxed: true}, disk)
	assert.NoError(t, err)
	now := time.UnixMilli(1_700_000_000_000)
	fillKeys(t, store, now, manyKeys)
	_, err = store.Configure(t.Context(), "q", storage.ConfigEdit{MinBatch: new(2), Linger: new(time.Hour)})
	assert.NoError(t, err)
	for calls := 0; ; calls++ {
		if calls == 10 {
			assert.NoError(t, store.Close())
			store = openTest(t, Options{Logger: quiet, Relaxed: true}, disk)
		}
		_, err := store.Stats(t.Context(), now, "q")
		assert.NoError(t, err)
		if !store.queues["q"].replacing.on {
			assert.Equal(t, calls, manyKeys/storage.Sweep-1)
			break
		}
	}
	got, err := store.Claim(t.Context(), now, storage.Claim{Queue: "q", Limit: 10, Lease: time.Hour})
	assert.NoError(t, err)
	assert.Equal(t, []any{len(got.Records), got.Next}, []any{0, time.Hour})
}

// R2 R3: a clock that steps back strands no key whose turn was by the clock before.
func TestClockStepsBackForKeys(t *testing.T) {
	clock := time.UnixMilli(1_700_000_000_000)
	store := openTest(t, Options{Logger: quiet, Relaxed: true, Clock: func() time.Time { return clock }}, vfs.NewMem())
	recs := []storage.Record{{ID: "1", Key: "k"}, {ID: "2", Key: "k", Due: clock.Add(-2 * time.Hour)}, {ID: "3", Key: "k", Due: clock.Add(-2 * time.Hour)}}
	_, err := store.Enqueue(t.Context(), time.Time{}, "q", recs)
	assert.NoError(t, err)
	claim := func() int {
		got, err := store.Claim(t.Context(), time.Time{}, storage.Claim{Queue: "q", Limit: 1, Lease: time.Minute})
		assert.NoError(t, err)
		return len(got.Records)
	}
	assert.Equal(t, claim(), 1)
	clock = clock.Add(-time.Hour)
	assert.Equal(t, claim(), 1)
	assert.Equal(t, claim(), 0) // the first was due by the clock before
}

// The members of a key are listed without looking at anybody else's, in every order.
func TestListOfKey(t *testing.T) {
	store := openTest(t, Options{Logger: quiet, Relaxed: true}, vfs.NewMem())
	now := time.UnixMilli(1_700_000_000_000)
	fillKeys(t, store, now, 500)
	_, err := store.Enqueue(t.Context(), now, "q", []storage.Record{{ID: "x", Key: "k", Delay: 2}, {ID: "y", Key: "k", Priority: 5}, {ID: "z", Key: "k", Delay: time.Hour}})
	assert.NoError(t, err)
	for _, desc := range []bool{false, true} {
		page, err := store.List(t.Context(), now.Add(time.Second), "q", storage.Filter{State: storage.Ready, Key: "k", Desc: desc, Limit: 10})
		assert.NoError(t, err)
		want := []string{"y", "x"}
		if desc {
			want = []string{"x", "y"}
		}
		assert.Equal(t, []string{page.Records[0].ID, page.Records[1].ID}, want)
		assert.True(t, len(page.Records) == 2 && !page.More)
	}
}
