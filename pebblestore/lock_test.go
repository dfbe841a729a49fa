// SPDX-License-Identifier: Apache-2.0

package pebblestore

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/storage"
)

// lockKeys are the keys of locks on the disk.
func lockKeys(t *testing.T, s *Store) []string {
	t.Helper()
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: lockKey(""), UpperBound: after(locksKey())})
	assert.NoError(t, err)
	var keys []string
	for ok := it.First(); ok; ok = it.Next() {
		keys = append(keys, string(bytes.Clone(it.Key())))
	}
	assert.NoError(t, it.Close())
	return keys
}

// R16: what is left of locks that were released, or have ended, is the last token.
func TestLocksLeaveNothingBehind(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	s := openTest(t, Options{Clock: func() time.Time { return now }}, vfs.NewMem())
	for i := range 50 {
		r := storage.LockRequest{Name: fmt.Sprint("lock ", i), Owner: "a", TTL: time.Minute}
		l, err := s.Acquire(t.Context(), time.Time{}, r)
		assert.NoError(t, err)
		if i%2 == 0 {
			assert.NoError(t, s.Release(t.Context(), time.Time{}, l.Receipt()))
		}
	}
	assert.Equal(t, len(lockKeys(t, s)), 26)
	now = now.Add(time.Minute)
	assert.ErrorIs(t, s.Release(t.Context(), time.Time{}, storage.LockReceipt{Name: "other", Owner: "a"}), storage.ErrLockLost)
	assert.Equal(t, lockKeys(t, s), []string{"m"})
	assert.Equal(t, len(s.lockWaits.byName), 0)
}

// R5 R9 R16: a directory that is opened again, after a crash say, knows its locks and bindings, and
// uses no token twice.
func TestLocksSurviveACrash(t *testing.T) {
	disk := vfs.NewCrashableMem()
	now := time.UnixMilli(1_700_000_000_000)
	o := Options{Clock: func() time.Time { return now }}
	s := openTest(t, o, disk)
	a, err := s.Acquire(t.Context(), time.Time{}, storage.LockRequest{Name: "a", Owner: "x", TTL: time.Minute})
	assert.NoError(t, err)
	b, err := s.Acquire(t.Context(), time.Time{}, storage.LockRequest{Name: "b", Owner: "x", TTL: time.Minute})
	assert.NoError(t, err)
	assert.NoError(t, s.Release(t.Context(), time.Time{}, b.Receipt()))
	_, err = s.Topic(t.Context(), "paid", storage.TopicEdit{Bind: []string{"mail", "stock"}})
	assert.NoError(t, err)

	crashed := disk.CrashClone(vfs.CrashCloneCfg{})
	now = now.Add(-5 * time.Second) // the clock is taken as standing still
	s = openTest(t, o, crashed)
	_, err = s.Acquire(t.Context(), time.Time{}, storage.LockRequest{Name: "a", Owner: "y", TTL: time.Minute})
	assert.ErrorIs(t, err, storage.ErrLocked)
	renewed, err := s.Renew(t.Context(), time.Time{}, a.Receipt(), time.Minute)
	assert.NoError(t, err)
	assert.Equal(t, renewed.Now, a.Now, "the clock ran backwards")
	again, err := s.Acquire(t.Context(), time.Time{}, storage.LockRequest{Name: "b", Owner: "y", TTL: time.Minute})
	assert.NoError(t, err)
	assert.True(t, again.Token > b.Token, again.Token, b.Token)
	bound, err := s.Topic(t.Context(), "paid", storage.TopicEdit{})
	assert.NoError(t, err)
	assert.Equal(t, bound, []string{"mail", "stock"})
}

// R16: a damaged lock is reported, not taken for a free one.
func TestDamagedLockIsReported(t *testing.T) {
	s := openTest(t, Options{}, vfs.NewMem())
	assert.NoError(t, s.db.Set(lockKey("a"), []byte("nonsense"), nil))
	_, err := s.Acquire(t.Context(), time.Time{}, storage.LockRequest{Name: "b", Owner: "y", TTL: time.Minute})
	assert.ErrorIs(t, err, storage.ErrFormat)
}
