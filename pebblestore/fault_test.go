// SPDX-License-Identifier: Apache-2.0

package pebblestore

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/storage"
	"github.com/bidemq/bide/storage/storagetest"
)

// fault fails the operations of one kind from the nth on, for a number of times.
type fault struct {
	kind  errorfs.OpReadWrite
	err   error
	left  atomic.Int64 // operations until then, -1 if it is not armed
	times atomic.Int64
}

func newFault(kind errorfs.OpReadWrite, err error) *fault {
	f := &fault{kind: kind, err: err}
	f.left.Store(-1)
	return f
}

func (f *fault) arm(n, times int64) {
	f.times.Store(times)
	f.left.Store(n)
}

// MaybeError implements [errorfs.Injector].
func (f *fault) MaybeError(op errorfs.Op) error {
	if op.Kind == errorfs.OpFileClose || op.Kind.ReadOrWrite() != f.kind || f.left.Load() < 0 {
		return nil
	}
	if f.left.Add(-1) >= 0 {
		return nil
	}
	f.left.Store(0)
	if f.times.Add(-1) < 0 {
		return nil
	}
	return f.err
}

// String implements [fmt.Stringer].
func (f *fault) String() string { return f.err.Error() }

// A write that fails once, or from then on, makes that call and all later ones fail. What was
// answered is there when the directory is opened again, also after a crash.
func TestWriteFaults(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for i := range uint64(10 * programs(t)) {
		context := fmt.Sprintf("program %d", seed+i)
		program := storagetest.Generate(seed+i, crashSteps)
		rng := rand.New(rand.NewPCG(seed, i))
		want, cause := storage.ErrUnavailable, error(errorfs.ErrInjected)
		if i%2 == 0 {
			want, cause = storage.ErrFull, syscall.ENOSPC
		}
		f := newFault(errorfs.OpIsWrite, cause)
		disk := vfs.NewCrashableMem()
		store, err := open("dir", Options{Logger: quiet, Relaxed: i%5 == 4}, errorfs.Wrap(disk, f))
		assert.NoError(t, err)
		f.arm(rng.Int64N(2*crashSteps), 1+999*rng.Int64N(2))

		failed := false
		answered := runProgram(t, store, program, func() bool {
			failed = store.guard.failure() != nil
			return failed
		})
		if failed {
			_, err := store.Get(t.Context(), time.Time{}, "crash", "a")
			assert.ErrorIs(t, err, want, context)
			_, err = store.Wait(t.Context(), []storage.Scope{{Queue: "crash"}}, time.Minute)
			assert.ErrorIs(t, err, want, context)
		}
		crashed := disk.CrashClone(vfs.CrashCloneCfg{})
		_ = store.Close()
		_, err = store.Get(t.Context(), time.Time{}, "crash", "a")
		assert.ErrorIs(t, err, storage.ErrClosed, context)

		f.arm(1<<40, 0)
		least := answered
		if store.relaxed {
			least = 0
		}
		recovered(t, disk, program, least, answered+1, context)
		recovered(t, crashed, program, least, answered+1, context+" crashed")
	}
}

// A read that fails makes its call fail, and no other.
func TestReadFaults(t *testing.T) {
	f := newFault(errorfs.OpIsRead, errorfs.ErrInjected)
	store := openTest(t, Options{Logger: quiet}, errorfs.Wrap(vfs.NewMem(), f))
	for n := range 3 {
		_, err := store.Enqueue(t.Context(), time.Time{}, "q", []storage.Record{{ID: fmt.Sprint(n), Body: make([]byte, 5000)}})
		assert.NoError(t, err)
		assert.NoError(t, store.db.Flush())
	}
	f.arm(0, 1)
	_, err := store.Get(t.Context(), time.Time{}, "q", "1")
	if err != nil { // it may have been cached
		assert.ErrorIs(t, err, storage.ErrUnavailable)
	}
	f.arm(0, 0)
	got, err := store.Claim(t.Context(), time.Time{}, storage.Claim{Queue: "q", Limit: 10, Lease: time.Minute})
	assert.NoError(t, err)
	assert.Equal(t, len(got.Records), 3)
}

// A directory on which nothing can be written does not open, and nothing is lost by the attempt.
func TestOpenFaults(t *testing.T) {
	disk := vfs.NewMem()
	store, err := open("dir", Options{Logger: quiet}, disk)
	assert.NoError(t, err)
	_, err = store.Enqueue(t.Context(), time.Time{}, "q", []storage.Record{{ID: "a"}})
	assert.NoError(t, err)
	assert.NoError(t, store.Close())
	opened := 0
	for n := range int64(60) {
		f := newFault(errorfs.OpIsWrite, errorfs.ErrInjected)
		f.arm(n, 1)
		store, err := open("dir", Options{Logger: quiet}, errorfs.Wrap(disk, f))
		if err != nil {
			assert.ErrorIs(t, err, storage.ErrUnavailable, n)
			continue
		}
		opened++
		_ = store.Close()
	}
	assert.True(t, opened > 0 && opened < 60, opened)
	store = openTest(t, Options{}, disk)
	_, err = store.Get(t.Context(), time.Time{}, "q", "a")
	assert.NoError(t, err)
}

// What Pebble finds damaged is an error of its own kind, and never a wrong record.
func TestDamagedFiles(t *testing.T) {
	for at := range 40 {
		disk := vfs.NewMem()
		store, err := open("dir", Options{Logger: quiet}, disk)
		assert.NoError(t, err)
		body := make([]byte, 100)
		for i := range body {
			body[i] = byte(i)
		}
		_, err = store.Enqueue(t.Context(), time.Time{}, "q", []storage.Record{{ID: "a", Body: body}})
		assert.NoError(t, err)
		assert.NoError(t, store.db.Flush())
		assert.NoError(t, store.Close())
		flip(t, disk, at)

		store, err = open("dir", Options{Logger: quiet}, disk)
		if err != nil {
			assert.True(t, errors.Is(err, storage.ErrFormat) || errors.Is(err, storage.ErrUnavailable), err)
			continue
		}
		got, err := store.Get(t.Context(), time.Time{}, "q", "a")
		if err == nil {
			assert.Equal(t, got.Body, body)
		} else {
			assert.True(t, !errors.Is(err, storage.ErrNotFound), err)
		}
		_ = store.Close()
	}
}

// flip damages a table in one of forty places.
func flip(t *testing.T, disk *vfs.MemFS, at int) {
	t.Helper()
	names, err := disk.List("dir")
	assert.NoError(t, err)
	for _, name := range names {
		if disk.PathBase(name) != name || len(name) < 4 || name[len(name)-4:] != ".sst" {
			continue
		}
		data, err := disk.UnsafeGetFileDataBuffer(disk.PathJoin("dir", name))
		assert.NoError(t, err)
		data[len(data)*at/40] ^= 0x10
	}
}
