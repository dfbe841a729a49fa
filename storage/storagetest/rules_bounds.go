// SPDX-License-Identifier: Apache-2.0

package storagetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/storage"
)

var boundRules = []rule{
	{name: "R12Refuse", test: r12Refuse},
	{name: "R12RefusePerKey", test: r12RefusePerKey},
	{name: "R12DropOldest", test: r12DropOldest},
	{name: "R12DropOldestPerKey", test: r12DropOldestPerKey},
	{name: "R12BothBounds", test: r12BothBounds},
	{name: "R12AlwaysFits", test: r12AlwaysFits},
	{name: "R12Replace", test: r12Replace},
	{name: "R12Excess", test: r12Excess},
	{name: "R12Log", test: r12Log},
	{name: "R12Wrong", test: r12Wrong},
	{name: "R13IdleKeys", timed: true, test: r13IdleKeys},
	{name: "R13ManyIdle", test: r13ManyIdle},
	{name: "R18HoldsBack", timed: true, test: r18HoldsBack},
	{name: "R18Keyless", timed: true, test: r18Keyless},
	{name: "R18Turns", test: r18Turns},
	{name: "R18Changes", test: r18Changes},
	{name: "R18Wakes", test: r18Wakes},
}

// numbered returns n records without a key, due now.
func numbered(from, n int) []storage.Record {
	recs := make([]storage.Record, n)
	for i := range recs {
		recs[i].ID = fmt.Sprint(from + i)
	}
	return recs
}

// R12: a full queue refuses, says so, and takes again once somebody has claimed.
func r12Refuse(t *testing.T, h *harness) {
	h.configure(storage.ConfigEdit{MaxLen: new(3)})
	results := h.try(numbered(0, 5)...)
	for i, r := range results {
		if i < 3 {
			assert.Equal(t, r.Outcome, storage.Stored)
		} else {
			assert.ErrorIs(t, r.Err, storage.ErrFull)
		}
	}
	assert.Equal(t, h.try(storage.Record{ID: "0"})[0].Outcome, storage.Duplicate)
	h.claimOne(time.Minute)
	h.enqueue(storage.Record{ID: "new", Delay: time.Hour})
	assert.ErrorIs(t, h.try(storage.Record{ID: "newer"})[0].Err, storage.ErrFull)
	h.counts(1, 2, 1, 0)
	AddsUp(t, h.stats())
}

// R12: a full key refuses, the others take.
func r12RefusePerKey(t *testing.T, h *harness) {
	h.configure(storage.ConfigEdit{MaxPerKey: new(2)})
	h.enqueue(keyed("a", 2)...)
	assert.ErrorIs(t, h.try(storage.Record{ID: "more", Key: "a"})[0].Err, storage.ErrFull)
	h.enqueue(keyed("b", 2)...)
	h.enqueue(numbered(0, 5)...)
	h.counts(0, 9, 0, 0)
}

// R12: the oldest make room: lowest priority, earliest due, first arrival. They are named and their
// ids are free.
func r12DropOldest(t *testing.T, h *harness) {
	h.configure(storage.ConfigEdit{MaxLen: new(4), Overflow: new(storage.DropOldest)})
	h.enqueue(
		storage.Record{ID: "high", Priority: 1, Due: h.now.Add(-time.Hour)}, storage.Record{ID: "second", Key: "k"},
		storage.Record{ID: "third"}, storage.Record{ID: "first", Due: h.now.Add(-time.Second)},
	)
	var dropped []string
	for _, r := range h.enqueue(numbered(0, 3)...) {
		dropped = append(dropped, r.Dropped...)
	}
	assert.Equal(t, dropped, []string{"first", "second", "third"})
	h.gone("second")
	assert.Equal(t, h.stats().Total.Dropped, int64(3))
	h.enqueue(storage.Record{ID: "second"})
	assert.Equal(t, ids(h.claim(10, time.Minute).Records), []string{"high", "1", "2", "second"})
	AddsUp(t, h.stats())
}

// R12: a full key drops its own first.
func r12DropOldestPerKey(t *testing.T, h *harness) {
	h.configure(storage.ConfigEdit{MaxPerKey: new(3), Overflow: new(storage.DropOldest)})
	h.enqueue(keyed("b", 3)...)
	h.enqueue(keyed("a", 3)...)
	result := h.enqueue(storage.Record{ID: "new", Key: "a", Priority: 5})[0]
	assert.Equal(t, result.Dropped, []string{"a0"})
	assert.Equal(t, ids(h.claimAs(storage.Claim{Limit: 9, Keys: []string{"a"}}).Records), []string{"a1", "a2", "new"})
	assert.Equal(t, ids(h.claimAs(storage.Claim{Limit: 9, Keys: []string{"b"}}).Records), []string{"b0", "b1", "b2"})
}

// R12: with both bounds the key makes room first.
func r12BothBounds(t *testing.T, h *harness) {
	h.configure(storage.ConfigEdit{MaxPerKey: new(2), MaxLen: new(3), Overflow: new(storage.DropOldest)})
	h.enqueue(keyed("b", 1)...)
	h.enqueue(keyed("a", 2)...)
	assert.Equal(t, h.enqueue(storage.Record{ID: "a2", Key: "a"})[0].Dropped, []string{"a0"})
	assert.Equal(t, h.enqueue(storage.Record{ID: "c0", Key: "c"})[0].Dropped, []string{"b0"})
	h.counts(0, 3, 0, 0)
}

// R12: what comes back always fits, and later enqueues work off the excess.
func r12AlwaysFits(t *testing.T, h *harness) {
	h.configure(storage.ConfigEdit{MaxLen: new(2)})
	h.enqueue(numbered(0, 2)...)
	held := h.claim(2, time.Minute).Records
	h.enqueue(numbered(2, 2)...)
	h.must(h.settle(held[0], storage.Retry, 0, ""))
	h.must(h.settle(held[1], storage.Release, 0, ""))
	h.counts(0, 4, 0, 0)
	assert.ErrorIs(t, h.try(storage.Record{ID: "more"})[0].Err, storage.ErrFull)
	h.configure(storage.ConfigEdit{Overflow: new(storage.DropOldest)})
	assert.Equal(t, h.enqueue(storage.Record{ID: "more"})[0].Dropped, []string{"0", "1", "2"})
	h.counts(0, 2, 0, 0)
}

// R12: a replacement needs no room but in its new key, and a rerun none.
func r12Replace(t *testing.T, h *harness) {
	h.configure(storage.ConfigEdit{MaxLen: new(2), MaxPerKey: new(1)})
	h.enqueue(storage.Record{ID: "a", Key: "k"}, storage.Record{ID: "b", Key: "l"})
	h.enqueue(storage.Record{ID: "a", Key: "k", OnLive: storage.Replace})
	assert.ErrorIs(t, h.try(storage.Record{ID: "a", Key: "l", OnLive: storage.Replace})[0].Err, storage.ErrFull)
	assert.Equal(t, h.get("a").Key, "k")
	h.claim(2, time.Minute)
	h.enqueue(numbered(0, 2)...)
	assert.Equal(t, h.enqueue(storage.Record{ID: "a", Key: "k", OnLive: storage.Rerun})[0].Outcome, storage.Reran)
}

// R12: a bound that is lowered works through what is too much in steps.
func r12Excess(t *testing.T, h *harness) {
	h.enqueue(numbered(0, 250)...)
	h.configure(storage.ConfigEdit{MaxLen: new(10), Overflow: new(storage.DropOldest)})
	h.counts(0, 250, 0, 0)
	for i, want := range []int{storage.Sweep, storage.Sweep, 43, 1} {
		got := h.enqueue(storage.Record{ID: fmt.Sprint("new", i)})[0].Dropped
		assert.Equal(t, len(got), want, fmt.Sprint(i))
	}
	h.counts(0, 10, 0, 0)
	AddsUp(t, h.stats())
}

// R12: a bounded queue is a log of fixed length, whose end is read without a consumer.
func r12Log(t *testing.T, h *harness) {
	h.configure(storage.ConfigEdit{MaxPerKey: new(5), Overflow: new(storage.DropOldest)})
	for i := range 20 {
		for _, key := range []string{"a", "b"} {
			h.enqueue(storage.Record{ID: fmt.Sprint(key, i), Key: key})
		}
		h.pass(time.Millisecond)
	}
	page, err := h.engine.List(h.ctx(), h.now, h.queue, storage.Filter{State: storage.Ready, Key: "b", Desc: true, Limit: 3})
	assert.NoError(t, err)
	assert.Equal(t, ids(page.Records), []string{"b19", "b18", "b17"})
}

// Configurations that make no sense are refused and change nothing.
func r12Wrong(t *testing.T, h *harness) {
	h.configure(storage.ConfigEdit{MaxLen: new(7)})
	for _, e := range []storage.ConfigEdit{
		{MaxLen: new(-1)},
		{MaxPerKey: new(-1)},
		{MaxLen: new(storage.MaxLen + 1)},
		{Overflow: new(storage.Overflow(9))},
		{KeyLimit: new(-1)},
		{KeyLimit: new(storage.MaxBatch + 1)},
		{MinBatch: new(2)},
		{Linger: new(time.Second)},
		{MinBatch: new(1), Linger: new(time.Second)},
		{MinBatch: new(-1)},
		{Linger: new(-time.Second), MinBatch: new(2)},
		{Ordered: new(true), KeyLimit: new(2)},
		{KeyLimit: new(2), MinBatch: new(3), Linger: new(time.Second)},
		{KeyIdle: new(-time.Second)},
		{RetainFor: new(-time.Second)},
		{RetainCount: new(-1)},
		{RetainBytes: new(int64(-1))},
		{DeadFor: new(-time.Second)},
		{DeadCount: new(-1)},
		{Paused: new(true), MaxLen: new(-1)},
	} {
		_, err := h.engine.Configure(h.ctx(), h.queue, e)
		assert.ErrorIs(t, err, storage.ErrInvalid)
	}
	c, err := h.engine.Configure(h.ctx(), h.queue, storage.ConfigEdit{})
	assert.NoError(t, err)
	assert.Equal(t, c, storage.QueueConfig{MaxLen: 7})
}

// R13: the waiting records of a key that nobody has joined for long enough expire.
func r13IdleKeys(t *testing.T, h *harness) {
	h.configure(storage.ConfigEdit{KeyIdle: new(2 * unit)})
	h.enqueue(keyed("a", 3)...)
	h.enqueue(storage.Record{ID: "free"})
	leased := h.claimOne(time.Hour)
	assert.Equal(t, leased.ID, "a0")
	h.pass(unit)
	h.enqueue(keyed("b", 2)...)
	h.pass(unit)
	h.counts(0, 3, 1, 0)
	assert.Equal(t, h.stats().Total.Expired, int64(2))
	h.gone("a2")
	h.must(h.settle(leased, storage.Ack, 0, ""))
	h.pass(unit)
	h.counts(0, 1, 0, 0)
	AddsUp(t, h.stats())
}

// R13: what expires at once is worked off in steps, longest idle first.
func r13ManyIdle(t *testing.T, h *harness) {
	h.configure(storage.ConfigEdit{KeyIdle: new(time.Minute)})
	for _, key := range []string{"z", "a"} {
		h.enqueue(keyed(key, 75)...)
		h.pass(time.Second)
	}
	h.pass(time.Minute)
	h.counts(0, 50, 0, 0)
	h.gone("z74")
	h.gone("a0")
	h.counts(0, 0, 0, 0)
	assert.Equal(t, h.stats().Total.Expired, int64(150))
}

func (h *harness) batches(most int, linger time.Duration) {
	h.configure(storage.ConfigEdit{MinBatch: &most, Linger: &linger})
}

// R18: a key is claimable with enough records due, or when its first has waited long enough.
func r18HoldsBack(t *testing.T, h *harness) {
	h.batches(3, 4*unit)
	h.enqueue(keyed("few", 2)...)
	h.enqueue(keyed("many", 4)...)
	h.enqueue(storage.Record{ID: "soon", Key: "few", Delay: unit})
	assert.Equal(t, ids(h.claimAs(storage.Claim{Limit: 10, Group: true}).Records), []string{"many0", "many1", "many2", "many3"})
	c := h.claimAs(storage.Claim{Limit: 10, Group: true})
	assert.Equal(t, len(c.Records), 0)
	assert.True(t, c.Next <= unit)
	h.pass(unit)
	assert.Equal(t, ids(h.claimAs(storage.Claim{Limit: 10, Group: true}).Records), []string{"few0", "few1", "soon"})
	h.enqueue(storage.Record{ID: "lonely", Key: "k"})
	h.claimNone()
	h.pass(4 * unit)
	assert.Equal(t, ids(h.claimAs(storage.Claim{Limit: 10, Group: true}).Records), []string{"lonely"})
}

// R18: the records without a key are held back together.
func r18Keyless(t *testing.T, h *harness) {
	h.batches(3, 4*unit)
	h.enqueue(storage.Record{ID: "a", Priority: 3}, storage.Record{ID: "b"})
	assert.True(t, h.claimNone().Next <= 4*unit)
	h.enqueue(storage.Record{ID: "c", Priority: 7})
	assert.Equal(t, ids(h.claim(2, time.Minute).Records), []string{"c", "a"})
	assert.True(t, h.claimNone().Next > 0)
	h.pass(4 * unit)
	assert.Equal(t, ids(h.claim(2, time.Minute).Records), []string{"b"})
}

// R18: a turn is a run there, so that a key that was let go is emptied.
func r18Turns(t *testing.T, h *harness) {
	h.batches(2, time.Minute)
	h.enqueue(keyed("a", 3)...)
	h.enqueue(keyed("b", 2)...)
	h.enqueue(keyed("c", 1)...)
	c := h.claim(10, time.Minute)
	assert.Equal(t, ids(c.Records), []string{"a0", "a1", "a2", "b0", "b1"})
	assert.Equal(t, c.Next, time.Minute)
}

// R18: a change counts at once.
func r18Changes(t *testing.T, h *harness) {
	h.enqueue(keyed("a", 2)...)
	h.batches(3, time.Minute)
	h.claimNone()
	h.batches(2, time.Minute)
	assert.Equal(t, ids(h.claim(1, time.Minute).Records), []string{"a0"})
	h.claimNone()
	h.batches(0, 0)
	assert.Equal(t, ids(h.claim(1, time.Minute).Records), []string{"a1"})
}

// R18 R8: the record that makes enough wakes who waits.
func r18Wakes(t *testing.T, h *harness) {
	h.now = time.Time{}
	h.batches(2, time.Hour)
	for i, key := range []string{"k", ""} {
		h.claimNone()
		h.enqueue(storage.Record{ID: fmt.Sprint(i, "first"), Key: key})
		h.claimNone()
		stored := make(chan error, 1)
		go func() {
			_, err := h.engine.Enqueue(h.ctx(), time.Time{}, h.queue, []storage.Record{{ID: fmt.Sprint(i, "second"), Key: key}})
			stored <- err
		}()
		h.awake("there are enough")
		assert.NoError(t, <-stored)
		assert.Equal(t, len(h.claim(10, time.Minute).Records), 2)
	}
}
