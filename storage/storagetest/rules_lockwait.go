// SPDX-License-Identifier: Apache-2.0

package storagetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/storage"
)

// Waits are in real time, so that all of these run on the engine's own clock.
var lockWaitRules = []rule{
	{name: "R16WokenByRelease", test: r16WokenByRelease},
	{name: "R16WokenByTheEnd", test: r16WokenByTheEnd},
	{name: "R16WaitEnds", test: r16WaitEnds},
	{name: "R16WaitCanceled", test: r16WaitCanceled},
	{name: "R16WhoGivesUpHoldsNobodyUp", test: r16WhoGivesUpHoldsNobodyUp},
	{name: "R16EverybodyGetsIt", test: r16EverybodyGetsIt},
}

// locked is what a waiting Acquire got.
type locked struct {
	storage.Lock
	err error
}

func (h *harness) waitLock(ctx context.Context, name, owner string, wait time.Duration) <-chan locked {
	got := make(chan locked, 1)
	go func() {
		l, err := h.engine.Acquire(ctx, time.Time{}, storage.LockRequest{Name: name, Owner: owner, TTL: time.Minute, Wait: wait})
		got <- locked{l, err}
	}()
	return got
}

func (h *harness) release(l storage.Lock) {
	h.t.Helper()
	assert.NoError(h.t, h.engine.Release(h.ctx(), h.now, l.Receipt()))
}

// R16: who waits gets the lock with its release, long before its end.
func r16WokenByRelease(t *testing.T, h *harness) {
	h.now = time.Time{}
	name := NewQueueName()
	held := h.lock(name, "first", time.Hour)
	for i := range 5 { // the first may find the release done
		next := h.waitLock(h.ctx(), name, fmt.Sprint(i), storage.Forever)
		began := time.Now()
		h.release(held)
		got := <-next
		assert.NoError(t, got.err)
		assert.True(t, time.Since(began) < patience, "slept through the release")
		assert.True(t, got.Token > held.Token)
		held = got.Lock
	}
}

// R16: who waits gets the lock at its end, without help.
func r16WokenByTheEnd(t *testing.T, h *harness) {
	h.now = time.Time{}
	name := NewQueueName()
	held := h.lock(name, "vanishes", unit)
	got := <-h.waitLock(h.ctx(), name, "waits", patience)
	assert.NoError(t, got.err)
	assert.True(t, !got.Now.Before(held.Until), "early:", got.Now, held.Until)
	assert.True(t, got.Now.Sub(held.Until) < patience/2, "late:", got.Now, held.Until)
}

// R16: a wait ends after its time with the latest holder.
func r16WaitEnds(t *testing.T, h *harness) {
	h.now = time.Time{}
	name := NewQueueName()
	held := h.lock(name, "keeps it", time.Hour)
	began := time.Now()
	got := <-h.waitLock(h.ctx(), name, "waits", unit/3)
	assert.ErrorIs(t, got.err, storage.ErrLocked)
	assert.True(t, time.Since(began) >= unit/3, "gave up early")
	e, ok := errors.AsType[*storage.LockedError](got.err)
	assert.True(t, ok && e.Owner == held.Owner && e.Until.Equal(held.Until), got.err)
}

// R16: a wait ends with its context.
func r16WaitCanceled(t *testing.T, h *harness) {
	h.now = time.Time{}
	name := NewQueueName()
	h.lock(name, "keeps it", time.Hour)
	ctx, cancel := context.WithCancel(h.ctx())
	got := h.waitLock(ctx, name, "waits", storage.Forever)
	cancel()
	assert.ErrorIs(t, (<-got).err, context.Canceled)
}

// R16: those who give up, told of the release or not, do not keep it from those who wait on.
func r16WhoGivesUpHoldsNobodyUp(t *testing.T, h *harness) {
	h.now = time.Time{}
	name := NewQueueName()
	held := h.lock(name, "first", time.Hour)
	ctx, cancel := context.WithCancel(h.ctx())
	var gone []<-chan locked
	for i := range 5 {
		gone = append(gone, h.waitLock(ctx, name, fmt.Sprint("gives up ", i), storage.Forever))
	}
	stays := h.waitLock(h.ctx(), name, "stays", storage.Forever)
	go cancel()
	h.release(held)
	for _, g := range gone {
		if got := <-g; got.err == nil {
			h.release(got.Lock)
		}
	}
	select {
	case got := <-stays:
		assert.NoError(t, got.err)
	case <-time.After(patience):
		t.Fatal("slept through the release")
	}
}

// R16: of many who want a lock each gets it, and never two at a time.
func r16EverybodyGetsIt(t *testing.T, h *harness) {
	h.now = time.Time{}
	name := NewQueueName()
	const waiters, times = 20, 3
	var inside, token atomic.Int64
	var wg sync.WaitGroup
	for i := range waiters {
		wg.Go(func() {
			for k := range times {
				r := storage.LockRequest{Name: name, Owner: fmt.Sprint(i, " ", k), TTL: time.Minute, Wait: storage.Forever}
				l, err := h.engine.Acquire(h.ctx(), time.Time{}, r)
				if err != nil {
					t.Error(err)
					return
				}
				if n := inside.Add(1); n != 1 {
					t.Errorf("%d hold the lock at once", n)
				}
				if last := token.Swap(l.Token); last >= l.Token {
					t.Errorf("token %d after %d", l.Token, last)
				}
				inside.Add(-1)
				if err := h.engine.Release(h.ctx(), time.Time{}, l.Receipt()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// closedLocks: a wait for a lock ends with Close.
func closedLocks(t *testing.T, engine storage.Engine, during func()) {
	h := newHarness(t, engine, true)
	name := NewQueueName()
	h.lock(name, "first", time.Hour)
	waits := h.waitLock(t.Context(), name, "waits", storage.Forever)
	during()
	assert.ErrorIs(t, (<-waits).err, storage.ErrClosed)
	_, err := h.tryLock(name, "late", time.Minute)
	assert.ErrorIs(t, err, storage.ErrClosed)
	assert.ErrorIs(t, engine.Release(t.Context(), time.Time{}, storage.LockReceipt{Name: name, Owner: "first"}), storage.ErrClosed)
	_, err = engine.Topic(t.Context(), name, storage.TopicEdit{})
	assert.ErrorIs(t, err, storage.ErrClosed)
	_, err = engine.Topics(t.Context(), "", 1)
	assert.ErrorIs(t, err, storage.ErrClosed)
}
