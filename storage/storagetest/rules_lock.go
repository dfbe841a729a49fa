// SPDX-License-Identifier: Apache-2.0

package storagetest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/storage"
)

var lockRules = []rule{
	{name: "R16OneHolder", timed: true, test: r16OneHolder},
	{name: "R16SameOwner", timed: true, test: r16SameOwner},
	{name: "R16LostAtItsEnd", timed: true, test: r16LostAtItsEnd},
	{name: "R16Renew", timed: true, test: r16Renew},
	{name: "R16HolderOnly", timed: true, test: r16HolderOnly},
	{name: "R16TokensGrow", timed: true, test: r16TokensGrow},
	{name: "R16StaleHolderIsRefused", timed: true, test: r16StaleHolderIsRefused},
	{name: "R16RoundedUp", test: r16RoundedUp},
	{name: "R16ManyEnd", timed: true, test: r16ManyEnd},
	{name: "R16ExplicitInstantsLeaveTheClock", test: r16ExplicitInstantsLeaveTheClock},
	{name: "R16Invalid", test: r16Invalid},
}

// locking is a harness with a lock that nobody else uses. Explicit instants are in the future, so
// that calls of other tests on the engine's own clock remove nothing of this one.
func (h *harness) locking() string {
	if !h.own {
		h.now = h.now.AddDate(70, 0, 0)
	}
	return NewQueueName() + " lock/α"
}

func (h *harness) tryLock(name, owner string, ttl time.Duration) (storage.Lock, error) {
	return h.engine.Acquire(h.ctx(), h.now, storage.LockRequest{Name: name, Owner: owner, TTL: ttl})
}

func (h *harness) lock(name, owner string, ttl time.Duration) storage.Lock {
	h.t.Helper()
	l, err := h.tryLock(name, owner, ttl)
	assert.NoError(h.t, err)
	assert.Equal(h.t, []string{l.Name, l.Owner}, []string{name, owner})
	assert.Equal(h.t, l.Until.Sub(l.Now), ttl)
	return l
}

// refused fails unless the lock is somebody else's.
func (h *harness) refused(name, owner string, holder storage.Lock) {
	h.t.Helper()
	_, err := h.tryLock(name, owner, time.Minute)
	assert.ErrorIs(h.t, err, storage.ErrLocked)
	locked, ok := errors.AsType[*storage.LockedError](err)
	assert.True(h.t, ok, "no LockedError")
	assert.Equal(h.t, []string{locked.Name, locked.Owner}, []string{name, holder.Owner})
	assert.Equal(h.t, locked.Until, holder.Until)
	assert.True(h.t, locked.Left() > 0 && !locked.Now.Before(holder.Now), locked.Now, locked.Left())
}

// lost fails unless the lock of the receipt has gone.
func (h *harness) lost(r storage.LockReceipt) {
	h.t.Helper()
	_, err := h.engine.Renew(h.ctx(), h.now, r, time.Minute)
	assert.ErrorIs(h.t, err, storage.ErrLockLost)
	assert.ErrorIs(h.t, h.engine.Release(h.ctx(), h.now, r), storage.ErrLockLost)
}

// R16: somebody who does not hold a lock does not get it before its release.
func r16OneHolder(t *testing.T, h *harness) {
	name := h.locking()
	a := h.lock(name, "a", time.Minute)
	h.refused(name, "b", a)
	h.lock(name+"2", "b", time.Minute)
	assert.NoError(t, h.engine.Release(h.ctx(), h.now, a.Receipt()))
	h.lost(a.Receipt())
	b := h.lock(name, "b", time.Minute)
	assert.True(t, b.Token > a.Token, b.Token, a.Token)
	h.refused(name, "a", b)
}

// R16: a repeated call gets what the first one got.
func r16SameOwner(t *testing.T, h *harness) {
	name := h.locking()
	a := h.lock(name, "a", time.Minute)
	h.pass(10 * time.Millisecond)
	again := h.lock(name, "a", time.Hour)
	assert.Equal(t, again.Token, a.Token)
	h.refused(name, "b", again)
	assert.NoError(t, h.engine.Release(h.ctx(), h.now, a.Receipt()))
	assert.True(t, h.lock(name, "a", time.Minute).Token > a.Token)
}

// R16: a lock has a holder until its end, and none from it on.
func r16LostAtItsEnd(t *testing.T, h *harness) {
	name := h.locking()
	a := h.lock(name, "a", unit)
	if !h.own {
		h.now = a.Until.Add(-time.Millisecond)
		h.refused(name, "b", a)
		_, err := h.engine.Renew(h.ctx(), h.now, a.Receipt(), time.Millisecond)
		assert.NoError(t, err)
	}
	h.until(a.Until)
	h.lost(a.Receipt())
	b := h.lock(name, "b", unit)
	assert.True(t, b.Token > a.Token, b.Token, a.Token)
	h.lost(a.Receipt())
	h.until(b.Until)
	again := h.lock(name, "b", time.Minute)
	assert.True(t, again.Token > b.Token, "the same owner gets a token of its own after the end")
	h.lost(b.Receipt())
}

// R16: renewing moves the end, forth and back.
func r16Renew(t *testing.T, h *harness) {
	name := h.locking()
	a := h.lock(name, "a", unit)
	longer, err := h.engine.Renew(h.ctx(), h.now, a.Receipt(), time.Hour)
	assert.NoError(t, err)
	assert.Equal(t, longer.Receipt(), a.Receipt())
	assert.Equal(t, longer.Until.Sub(longer.Now), time.Hour)
	h.until(a.Until)
	h.refused(name, "b", longer)
	shorter, err := h.engine.Renew(h.ctx(), h.now, a.Receipt(), 10*time.Millisecond)
	assert.NoError(t, err)
	h.until(shorter.Until)
	h.lost(a.Receipt())
}

// R16: nobody but the holder renews or releases, with the token of the latest holding.
func r16HolderOnly(t *testing.T, h *harness) {
	name := h.locking()
	a := h.lock(name, "a", time.Minute)
	for _, wrong := range []storage.LockReceipt{
		{Name: name, Owner: "b", Token: a.Token},
		{Name: name, Owner: "a", Token: a.Token - 1},
		{Name: name, Owner: "a", Token: a.Token + 1},
		{Name: name + "2", Owner: "a", Token: a.Token},
	} {
		h.lost(wrong)
	}
	h.refused(name, "b", a)
	assert.NoError(t, h.engine.Release(h.ctx(), h.now, a.Receipt()))
}

// R16: tokens grow from one holder to the next, whatever the locks, and stay exact in a double.
func r16TokensGrow(t *testing.T, h *harness) {
	name := h.locking()
	last := int64(0)
	for i := range 20 {
		l := h.lock(name, "a", time.Millisecond)
		assert.True(t, l.Token > last && l.Token >= l.Now.UnixMicro() && l.Token < 1<<53, l.Token, last)
		last = l.Token
		other := h.lock(name+"2", "a", time.Minute)
		assert.True(t, other.Token > last, other.Token, last)
		last = other.Token
		assert.NoError(t, h.engine.Release(h.ctx(), h.now, other.Receipt()))
		if i%2 == 0 {
			h.until(l.Until)
			continue
		}
		err := h.engine.Release(h.ctx(), h.now, l.Receipt())
		assert.True(t, err == nil || h.own && errors.Is(err, storage.ErrLockLost), err)
	}
}

// table is what holders of a lock write to: a row with the token of the latest writer.
type table struct {
	token int64
	value string
}

// update is UPDATE t SET token = $1, value = $2 WHERE token <= $1, and says whether a row was found.
func (t *table) update(token int64, value string) bool {
	if t.token > token {
		return false
	}
	t.token, t.value = token, value
	return true
}

// R16: a holder that stood still beyond its end, and writes after the next one has written, is
// refused by what it writes to.
func r16StaleHolderIsRefused(t *testing.T, h *harness) {
	name := h.locking()
	var row table
	stale := h.lock(name, "stands still", unit)
	assert.True(t, row.update(stale.Token, "begun by the first"))
	h.until(stale.Until)
	next := h.lock(name, "goes on", time.Minute)
	assert.True(t, row.update(next.Token, "by the second"))
	assert.True(t, !row.update(stale.Token, "by the first"), "the stale holder wrote")
	assert.True(t, row.update(next.Token, "by the second again"))
	assert.Equal(t, row.value, "by the second again")
}

// R16: instants are rounded down, lengths up.
func r16RoundedUp(t *testing.T, h *harness) {
	name := h.locking()
	start := h.now
	h.now = start.Add(999 * time.Microsecond)
	l, err := h.tryLock(name, "a", 1500*time.Microsecond)
	assert.NoError(t, err)
	assert.Equal(t, l.Now, start)
	assert.Equal(t, l.Until, start.Add(2*time.Millisecond))
}

// R16: however many locks end at once, each can be taken.
func r16ManyEnd(t *testing.T, h *harness) {
	name := h.locking()
	var last storage.Lock
	for i := range 2*storage.Sweep + 1 {
		last = h.lock(fmt.Sprint(name, i), "a", unit)
	}
	h.until(last.Until)
	for i := range 2*storage.Sweep + 1 {
		h.lock(fmt.Sprint(name, i), "b", time.Minute)
	}
}

// R16: explicit instants do not move the engine's own clock.
func r16ExplicitInstantsLeaveTheClock(t *testing.T, h *harness) {
	name := h.locking()
	h.now = time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC)
	h.lock(name, "a", time.Hour)
	h.now = time.Time{}
	l := h.lock(name+"2", "a", time.Minute)
	assert.True(t, l.Now.Year() < 2099, "the engine's clock followed an explicit instant to", l.Now)
}

// R16: what can never work is refused before anything is done.
func r16Invalid(t *testing.T, h *harness) {
	name := h.locking()
	good := storage.LockRequest{Name: name, Owner: "a", TTL: time.Minute}
	for what, edit := range map[string]func(*storage.LockRequest){
		"no name":                 func(r *storage.LockRequest) { r.Name = "" },
		"a long name":             func(r *storage.LockRequest) { r.Name = string(make([]byte, storage.MaxID+1)) },
		"a control character":     func(r *storage.LockRequest) { r.Name = "a\x00b" },
		"no owner":                func(r *storage.LockRequest) { r.Owner = "" },
		"an owner that is binary": func(r *storage.LockRequest) { r.Owner = "\xff" },
		"no length":               func(r *storage.LockRequest) { r.TTL = 0 },
		"a length too long":       func(r *storage.LockRequest) { r.TTL = storage.MaxLease + 1 },
		"a negative wait":         func(r *storage.LockRequest) { r.Wait = -1 },
		"a wait at an instant":    func(r *storage.LockRequest) { r.Wait = time.Second },
	} {
		r := good
		edit(&r)
		_, err := h.engine.Acquire(h.ctx(), h.now, r)
		assert.ErrorIs(t, err, storage.ErrInvalid, what)
	}
	l := h.lock(name, "a", time.Minute)
	_, err := h.engine.Renew(h.ctx(), h.now, l.Receipt(), 0)
	assert.ErrorIs(t, err, storage.ErrInvalid)
	_, err = h.engine.Renew(h.ctx(), h.now, storage.LockReceipt{Owner: "a"}, time.Minute)
	assert.ErrorIs(t, err, storage.ErrInvalid)
	assert.ErrorIs(t, h.engine.Release(h.ctx(), h.now, storage.LockReceipt{Name: name}), storage.ErrInvalid)
	assert.ErrorIs(t, h.engine.Release(h.ctx(), time.UnixMilli(-1), l.Receipt()), storage.ErrInvalid)
	h.refused(name, "b", l)
}
