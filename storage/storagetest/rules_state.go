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

var expiryRules = []rule{
	{name: "R13Expiry", timed: true, test: r13Expiry},
	{name: "R13OfTheQueue", test: r13OfTheQueue},
	{name: "R13Leased", test: r13Leased},
	{name: "R13EditMoves", test: r13EditMoves},
	{name: "R13Many", test: r13Many},
}

var countRules = []rule{
	{name: "R14CountsAddUp", test: r14CountsAddUp},
	{name: "R14RepairFindsNothing", test: r14RepairFindsNothing},
}

var pauseRules = []rule{
	{name: "R15Paused", timed: true, test: r15Paused},
	{name: "R15Configure", test: r15Configure},
	{name: "R20Shards", test: r20Shards},
}

// R20: every engine keeps the number of shards, and it may change at any time.
func r20Shards(t *testing.T, h *harness) {
	for i, n := range []int{3, 0, 1, 2, 5} {
		h.enqueue(storage.Record{ID: fmt.Sprint(i), Key: fmt.Sprint("k", i)}, storage.Record{ID: fmt.Sprint("free", i)})
		c, err := h.engine.Configure(h.ctx(), h.queue, storage.ConfigEdit{Shards: &n})
		if errors.Is(err, storage.ErrConflict) {
			continue // too many changes at a time
		}
		assert.NoError(t, err)
		want := n
		if n == 1 {
			want = 0
		}
		assert.Equal(t, c.Shards, want)
		assert.Equal(t, h.stats().Config.Shards, want)
		assert.Equal(t, h.try(storage.Record{ID: "0", Key: "k0"})[0].Outcome, storage.Duplicate)
	}
	for _, n := range []int{-1, storage.MaxShards + 1} {
		_, err := h.engine.Configure(h.ctx(), h.queue, storage.ConfigEdit{Shards: &n})
		assert.ErrorIs(t, err, storage.ErrInvalid)
	}
	for left := 10; left > 0; {
		recs := h.claim(left, time.Minute).Records
		assert.True(t, len(recs) > 0, left, "left")
		for _, r := range recs {
			h.must(h.settle(r, storage.Ack, 0, ""))
			left--
		}
	}
	h.counts(0, 0, 0, 0)
}

// R13: a record past its expiry, counted from its first due time, is never delivered.
func r13Expiry(t *testing.T, h *harness) {
	h.enqueue(storage.Record{ID: "short", Delay: unit, ExpireIn: unit}, storage.Record{ID: "long", Delay: unit, ExpireIn: time.Hour})
	short := h.get("short")
	assert.Equal(t, short.Expires(), short.Due.Add(unit))
	h.until(short.Expires())
	h.gone("short")
	assert.Equal(t, ids(h.claim(10, time.Minute).Records), []string{"long"})
	st := h.stats()
	assert.Equal(t, st.Total.Expired, 1)
	assert.Equal(t, st.Leased, 1)
	assert.Equal(t, h.try(storage.Record{ID: "short"})[0].Outcome, storage.Stored)
}

// R13: a queue gives its expiry to records that come without one.
func r13OfTheQueue(t *testing.T, h *harness) {
	h.enqueue(storage.Record{ID: "before"})
	h.configure(storage.ConfigEdit{ExpireIn: new(time.Minute)})
	h.enqueue(storage.Record{ID: "queue"}, storage.Record{ID: "own", ExpireIn: time.Hour})
	assert.Equal(t, h.get("queue").ExpireIn, time.Minute)
	assert.Equal(t, h.get("own").ExpireIn, time.Hour)
	assert.Equal(t, h.get("before").ExpireIn, 0)
	h.pass(time.Minute)
	assert.Equal(t, ids(h.claim(10, time.Minute).Records), []string{"before", "own"})
}

// R13: a lease outlasts the expiry; what comes back from it is past it.
func r13Leased(t *testing.T, h *harness) {
	h.enqueue(storage.Record{ID: "acked", ExpireIn: time.Second}, storage.Record{ID: "retried", ExpireIn: time.Second},
		storage.Record{ID: "lapsed", ExpireIn: time.Second}, storage.Record{ID: "late", ExpireIn: time.Second})
	recs := h.claim(4, time.Minute).Records
	h.pass(2 * time.Second)
	h.counts(0, 0, 4, 0)
	h.must(h.settle(recs[0], storage.Ack, 0, ""))
	h.must(h.settle(recs[1], storage.Retry, 0, ""))
	h.gone("retried")
	h.must(h.settle(recs[3], storage.Expire, 0, ""))
	h.gone("late")
	h.pass(time.Minute)
	h.gone("lapsed")
	h.claimNone()
	st := h.stats()
	assert.Equal(t, st.Total.Expired, 3)
	assert.Equal(t, st.Total.Acked, 1)
	h.counts(0, 0, 0, 0)
}

// R13: rescheduling moves the expiry, a retry does not.
func r13EditMoves(t *testing.T, h *harness) {
	h.enqueue(storage.Record{ID: "edited", ExpireIn: time.Minute}, storage.Record{ID: "retried", ExpireIn: time.Minute, Priority: 1})
	h.must(h.settle(h.claimOne(time.Minute), storage.Retry, 10*time.Minute, ""))
	_, err := h.engine.Edit(h.ctx(), h.now, h.queue, "edited", storage.Edit{Delay: new(10 * time.Minute)})
	assert.NoError(t, err)
	h.counts(2, 0, 0, 0)
	h.pass(time.Minute)
	h.gone("retried")
	h.pass(9 * time.Minute)
	assert.Equal(t, ids(h.claim(10, time.Minute).Records), []string{"edited"})
}

// R13: more records that expired at once than a call works off are not delivered either.
func r13Many(t *testing.T, h *harness) {
	const n = 5 * storage.Sweep / 2
	recs := make([]storage.Record, n)
	for i := range recs {
		recs[i] = storage.Record{ID: NewQueueName(), ExpireIn: time.Second}
	}
	h.enqueue(recs...)
	h.enqueue(storage.Record{ID: "good"})
	h.pass(time.Second)
	var got []string
	for range n {
		c := h.claim(storage.MaxBatch, time.Hour)
		got = append(got, ids(c.Records)...)
		if c.Next > 0 {
			break
		}
	}
	assert.Equal(t, got, []string{"good"})
	assert.Equal(t, h.stats().Total.Expired, n)
}

// R14: states add up to what came in less what went out.
func r14CountsAddUp(t *testing.T, h *harness) {
	h.enqueue(
		storage.Record{ID: "delayed", Delay: time.Hour}, storage.Record{ID: "canceled", Delay: time.Hour},
		storage.Record{ID: "purged", Delay: 2 * time.Hour},
		storage.Record{ID: "ready"}, storage.Record{ID: "expires", ExpireIn: time.Second, Priority: 1},
		storage.Record{ID: "acked", Priority: 9}, storage.Record{ID: "dead", Priority: 8, MaxAttempts: 1},
		storage.Record{ID: "lapses", Priority: 7, MaxAttempts: 1}, storage.Record{ID: "released", Priority: 6},
		storage.Record{ID: "leased", Priority: 5}, storage.Record{ID: "buried", Priority: 4},
	)
	recs := h.claim(6, time.Second).Records
	assert.Equal(t, ids(recs), []string{"acked", "dead", "lapses", "released", "leased", "buried"})
	h.must(h.settle(recs[0], storage.Ack, 0, ""))
	h.must(h.settle(recs[1], storage.Retry, 0, ""))
	h.must(h.settle(recs[3], storage.Release, 0, ""))
	h.must(h.extend(recs[4], time.Hour))
	h.must(h.settle(recs[5], storage.Bury, 0, ""))
	h.enqueue(storage.Record{ID: "leased", OnLive: storage.Rerun}, storage.Record{ID: "ready", OnLive: storage.Replace})
	h.try(storage.Record{ID: "delayed"})
	assert.NoError(t, h.engine.Cancel(h.ctx(), h.now, h.queue, "canceled", false))
	b, err := h.engine.Purge(h.ctx(), h.now, h.queue, storage.Filter{State: storage.Delayed, ID: "purged", Limit: 1})
	assert.NoError(t, err)
	assert.Equal(t, b.Count, 1)
	h.pass(time.Second)
	b, err = h.engine.Redrive(h.ctx(), h.now, h.queue, storage.Filter{State: storage.Dead, ID: "buried", Limit: 1})
	assert.NoError(t, err)
	assert.Equal(t, b.Count, 1)

	st := h.stats()
	assert.Equal(t, Comparable(st).Total, storage.Counters{
		Enqueued: 12, Duplicates: 1, Replaced: 1, Reruns: 1, Claimed: 6, Acked: 1, Retried: 1, Released: 1,
		Lapsed: 1, Died: 3, Redriven: 1, Expired: 1, Canceled: 1, Purged: 1,
	})
	h.counts(1, 3, 1, 2)
	assert.Equal(t, st.NextDue, epoch, "the released one keeps its due time")
	AddsUp(t, st)
	assert.Equal(t, h.stats(), st, "asking changes nothing")
}

// AddsUp fails unless the states of a queue add up to what its counters say. R14
func AddsUp(t testing.TB, st storage.Stats) {
	t.Helper()
	n := st.Total
	got := st.Delayed + st.Ready + st.Leased + st.Dead + st.Done
	assert.Equal(t, got, n.Enqueued-n.Replaced-n.Acked-n.Expired-n.Canceled-n.Purged-n.Dropped+n.Retained-n.Trimmed, "records stored, of", n)
}

// R14: Repair of a queue that is well finds nothing and changes nothing.
func r14RepairFindsNothing(t *testing.T, h *harness) {
	for range 50 {
		h.enqueue(storage.Record{ID: NewQueueName(), Priority: 3}, storage.Record{ID: NewQueueName(), Delay: time.Hour, ExpireIn: time.Hour},
			storage.Record{ID: NewQueueName(), DedupFor: time.Hour})
	}
	for i, r := range h.claim(60, time.Hour).Records {
		h.must(i%4 == 3 || h.settle(r, []storage.Verdict{storage.Ack, storage.Bury, storage.Retry}[i%4], 0, ""))
	}
	before := h.stats()
	for _, dry := range []bool{true, false} {
		for _, limit := range []int{storage.MaxBatch, 7} {
			assert.Equal(t, RepairAll(t, h.engine, h.now, h.queue, limit, dry), nil)
		}
	}
	assert.Equal(t, h.stats(), before)
}

// RepairAll repairs a queue from the beginning to the end and returns what was wrong.
func RepairAll(t testing.TB, engine storage.Engine, now time.Time, queue string, limit int, dryRun bool) []storage.Fix {
	t.Helper()
	var fixes []storage.Fix
	step := storage.Repair{DryRun: dryRun, Limit: limit}
	for range 10_000 {
		got, err := engine.Repair(t.Context(), now, queue, step)
		assert.NoError(t, err)
		fixes = append(fixes, got.Fixes...)
		if got.Next == "" {
			return fixes
		}
		step.After = got.Next
	}
	t.Fatal("the repair does not end")
	return nil
}

// R15: a paused queue accepts and does not deliver.
func r15Paused(t *testing.T, h *harness) {
	h.enqueue(storage.Record{ID: "running"})
	r := h.claimOne(time.Minute)
	h.configure(storage.ConfigEdit{Paused: new(true)})
	h.enqueue(storage.Record{ID: "a"}, storage.Record{ID: "b", Delay: unit})
	assert.Equal(t, h.claimNone().Next, storage.Forever)
	h.pass(unit)
	assert.Equal(t, h.claimNone().Next, storage.Forever)
	h.must(h.extend(r, time.Minute))
	h.must(h.settle(r, storage.Ack, 0, ""))
	h.counts(0, 2, 0, 0)
	assert.True(t, h.stats().Config.Paused)
	h.configure(storage.ConfigEdit{Paused: new(false)})
	assert.Equal(t, ids(h.claim(10, time.Minute).Records), []string{"a", "b"})
}

// R15: a configuration is edited field by field, and read by an empty edit.
func r15Configure(t *testing.T, h *harness) {
	configure := func(e storage.ConfigEdit) storage.QueueConfig {
		c, err := h.engine.Configure(h.ctx(), h.queue, e)
		assert.NoError(t, err)
		return c
	}
	assert.Equal(t, configure(storage.ConfigEdit{}), storage.QueueConfig{})
	configure(storage.ConfigEdit{Paused: new(true)})
	configure(storage.ConfigEdit{ExpireIn: new(time.Microsecond)})
	want := storage.QueueConfig{Paused: true, ExpireIn: time.Millisecond, MaxDeliveries: 5}
	assert.Equal(t, configure(storage.ConfigEdit{MaxDeliveries: new(5)}), want)
	assert.Equal(t, configure(storage.ConfigEdit{}), want)
	assert.Equal(t, h.stats().Config, want)
	for _, bad := range []storage.ConfigEdit{
		{ExpireIn: new(time.Duration(-1))}, {MaxDeliveries: new(-1)}, {Paused: new(false), ExpireIn: new(storage.MaxDelay + 1)},
	} {
		_, err := h.engine.Configure(h.ctx(), h.queue, bad)
		assert.ErrorIs(t, err, storage.ErrInvalid)
	}
	assert.Equal(t, configure(storage.ConfigEdit{}), want)
}
