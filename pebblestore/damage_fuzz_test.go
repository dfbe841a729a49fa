// SPDX-License-Identifier: Apache-2.0

package pebblestore

import (
	"errors"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/storage"
	"github.com/bidemq/bide/storage/storagetest"
)

// Whatever is written over one of the values of a directory, or to a key that nothing has, calls end,
// with an answer or with an error of a category; and where Repair goes through, it leaves nothing to
// repair. R14
func FuzzDamagedQueue(f *testing.F) {
	f.Add(uint(0), []byte{}, []byte{}, true)
	for i := range uint(40) {
		f.Add(i, []byte{byte(i)}, []byte{valueFormat, byte(i), 0x7f}, i%4 == 0)
	}
	f.Add(uint(3), []byte("Wq\x00\x00\xff"), []byte{1}, false)
	now := time.UnixMilli(1_700_000_000_000)
	f.Fuzz(func(t *testing.T, which uint, key, value []byte, drop bool) {
		disk := vfs.NewMem()
		store, err := open("dir", Options{Logger: quiet, Relaxed: true}, disk)
		assert.NoError(t, err)
		fillQueue(t, store, now)
		assert.NoError(t, store.Close())
		store, err = open("dir", Options{Logger: quiet, Relaxed: true}, disk) // which has not read the queue
		assert.NoError(t, err)
		damageOne(t, store, which, key, value, drop)

		said := func(err error) {
			t.Helper()
			for _, c := range []error{storage.ErrFormat, storage.ErrInvalid, storage.ErrNotFound, storage.ErrConflict, storage.ErrFull, storage.ErrUnavailable} {
				if err == nil || errors.Is(err, c) {
					return
				}
			}
			t.Fatalf("got %v, which has no category", err)
		}
		ctx := t.Context()
		for _, id := range []string{"a", "b", "done", "dead", "new"} {
			_, err := store.Get(ctx, now, "q", id)
			said(err)
		}
		_, err = store.Stats(ctx, now, "q")
		said(err)
		_, err = store.Keys(ctx, now, "q", storage.KeyFilter{Limit: 10})
		said(err)
		for _, state := range []storage.State{storage.Ready, storage.Delayed, storage.Leased, storage.Dead, storage.Done} {
			_, err := store.List(ctx, now, "q", storage.Filter{State: state, Limit: 10})
			said(err)
		}
		_, err = store.Enqueue(ctx, now, "q", []storage.Record{{ID: "new", Key: "k"}, {ID: "a", OnLive: storage.Replace}})
		said(err)
		claimed, err := store.Claim(ctx, now.Add(time.Minute), storage.Claim{Queue: "q", Limit: 10, Lease: time.Minute})
		said(err)
		for _, r := range claimed.Records {
			_, err := store.Settle(ctx, now.Add(time.Minute), []storage.Settlement{{Receipt: r.Receipt("q"), Verdict: storage.Retry}})
			said(err)
		}
		if mended(t, store, now.Add(time.Minute), said) {
			assert.Equal(t, len(storagetest.RepairAll(t, store, now.Add(time.Minute), "q", 100, true)), 0)
		}
		said(store.Close())
	})
}

// fillQueue stores records in every state.
func fillQueue(t *testing.T, s *Store, now time.Time) {
	t.Helper()
	_, err := s.Configure(t.Context(), "q", storage.ConfigEdit{RetainCount: new(10), KeyLimit: new(2)})
	assert.NoError(t, err)
	_, err = s.Enqueue(t.Context(), now, "q", []storage.Record{{ID: "done", DedupFor: time.Hour}, {ID: "dead"}, {ID: "leased", Key: "k"}})
	assert.NoError(t, err)
	got, err := s.Claim(t.Context(), now, storage.Claim{Queue: "q", Limit: 3, Lease: time.Second})
	assert.NoError(t, err)
	var ss []storage.Settlement
	for i, v := range []storage.Verdict{storage.Ack, storage.Bury} {
		ss = append(ss, storage.Settlement{Receipt: got.Records[i].Receipt("q"), Verdict: v})
	}
	_, err = s.Settle(t.Context(), now, ss)
	assert.NoError(t, err)
	_, err = s.Enqueue(t.Context(), now, "q", []storage.Record{
		{ID: "a", Key: "k", ExpireIn: time.Hour}, {ID: "b", Priority: 3}, {ID: "c", Delay: time.Minute, Key: "l"}, {ID: "leased", OnLive: storage.Rerun},
	})
	assert.NoError(t, err)
}

// damageOne writes a value over one of the queue's, or takes it away, or writes it to another key.
func damageOne(t *testing.T, s *Store, which uint, key, value []byte, drop bool) {
	t.Helper()
	if len(key) > 1 {
		assert.NoError(t, s.db.Set(key, value, pebble.Sync))
		return
	}
	it, err := s.db.NewIter(nil)
	assert.NoError(t, err)
	var keys [][]byte
	for ok := it.First(); ok; ok = it.Next() {
		keys = append(keys, append([]byte(nil), it.Key()...))
	}
	assert.NoError(t, it.Close())
	one := keys[which%uint(len(keys))]
	if drop {
		assert.NoError(t, s.db.Delete(one, pebble.Sync))
		return
	}
	assert.NoError(t, s.db.Set(one, value, pebble.Sync))
}

// mended says whether a repair went through.
func mended(t *testing.T, s *Store, now time.Time, said func(error)) bool {
	t.Helper()
	step := storage.Repair{Limit: 100}
	for range 1000 {
		got, err := s.Repair(t.Context(), now, "q", step)
		if err != nil {
			said(err)
			return false
		}
		if got.Next == "" {
			return true
		}
		step.After = got.Next
	}
	t.Fatal("the repair does not end")
	return false
}
