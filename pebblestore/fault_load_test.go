// SPDX-License-Identifier: Apache-2.0

package pebblestore

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/storage"
	"github.com/bidemq/bide/storage/storagetest"
)

// Under load from many callers the disk fills up, or fails: calls fail with an error of that kind and
// none hangs, and when the directory is opened again nothing that was answered is lost or done twice.
func TestFaultsUnderLoad(t *testing.T) {
	for i, cause := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EIO, errorfs.ErrInjected} {
		want := storage.ErrUnavailable
		if i < 2 {
			want = storage.ErrFull
		}
		f := newFault(errorfs.OpIsWrite, cause)
		disk := vfs.NewCrashableMem()
		store, err := open("dir", Options{Logger: quiet}, errorfs.Wrap(disk, f))
		assert.NoError(t, err)
		seen := crowdLedger{stored: map[string]bool{}, settled: map[string]bool{}, unsure: map[string]bool{}}
		var wg sync.WaitGroup
		for lane := range 8 {
			wg.Go(func() { seen.produce(t, store, lane, want) })
			wg.Go(func() { seen.consume(t, store, want) })
		}
		seen.await(500)
		f.arm(int64(rand.IntN(20)), 1<<40) // it stays so
		wg.Wait()
		_, err = store.Stats(t.Context(), time.Time{}, "q")
		assert.ErrorIs(t, err, want)
		crashed := disk.CrashClone(vfs.CrashCloneCfg{})
		_ = store.Close()

		store, err = open("dir", Options{Logger: quiet}, crashed)
		assert.NoError(t, err)
		for id := range seen.stored {
			_, err := store.Get(t.Context(), time.Time{}, "q", id)
			if errors.Is(err, storage.ErrNotFound) {
				assert.True(t, seen.settled[id] || seen.unsure[id], "lost ", id)
				continue
			}
			assert.NoError(t, err)
			assert.True(t, !seen.settled[id], "came back ", id)
		}
		assert.Equal(t, storagetest.RepairAll(t, store, time.Now(), "q", 100, true), nil)
		_, err = store.Enqueue(t.Context(), time.Time{}, "q", []storage.Record{{ID: "after"}})
		assert.NoError(t, err)
		assert.NoError(t, store.Close())
	}
}

// crowdLedger is what many callers were told.
type crowdLedger struct {
	mu      sync.Mutex
	more    chan struct{}
	stored  map[string]bool
	settled map[string]bool
	unsure  map[string]bool // settled, without an answer
}

func (l *crowdLedger) note(set map[string]bool, id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	set[id] = true
	if l.more != nil {
		close(l.more)
		l.more = nil
	}
}

// await waits until so many messages were settled.
func (l *crowdLedger) await(n int) {
	for {
		l.mu.Lock()
		if len(l.settled) >= n {
			l.mu.Unlock()
			return
		}
		more := make(chan struct{})
		l.more = more
		l.mu.Unlock()
		<-more
	}
}

func (l *crowdLedger) produce(t *testing.T, s *Store, lane int, want error) {
	for n := 0; ; n++ {
		id := fmt.Sprintf("%d-%d", lane, n)
		if _, err := s.Enqueue(t.Context(), time.Time{}, "q", []storage.Record{{ID: id, Body: make([]byte, 200)}}); err != nil {
			if !errors.Is(err, want) {
				t.Error(err)
			}
			return
		}
		l.note(l.stored, id)
	}
}

func (l *crowdLedger) consume(t *testing.T, s *Store, want error) {
	for {
		got, err := s.Claim(t.Context(), time.Time{}, storage.Claim{Queue: "q", Limit: 10, Lease: time.Minute})
		for i := range got.Records {
			r := &got.Records[i]
			lost, serr := s.Settle(t.Context(), time.Time{}, []storage.Settlement{{Receipt: r.Receipt("q"), Verdict: storage.Ack}})
			if serr != nil {
				l.note(l.unsure, r.ID)
				err = serr
				break
			}
			if len(lost) > 0 {
				t.Errorf("lease of %q was lost", r.ID)
			}
			l.note(l.settled, r.ID)
		}
		if err != nil {
			if !errors.Is(err, want) {
				t.Error(err)
			}
			return
		}
	}
}
