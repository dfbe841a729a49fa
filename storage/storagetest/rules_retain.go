// SPDX-License-Identifier: Apache-2.0

package storagetest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/storage"
)

var retainRules = []rule{
	{name: "R19Off", test: r19Off},
	{name: "R19Done", timed: true, test: r19Done},
	{name: "R19Limits", test: r19Limits},
	{name: "R19DoneBlocksNoID", test: r19DoneBlocksNoID},
	{name: "R19DeadLimits", test: r19DeadLimits},
	{name: "R19Told", test: r19Told},
	{name: "R19History", test: r19History},
}

// work enqueues a record, claims it and settles it.
func (h *harness) work(r storage.Record, v storage.Verdict) {
	h.t.Helper()
	h.enqueue(r)
	h.must(h.settle(h.claimOne(time.Minute), v, 0, ""))
}

func (h *harness) list(f storage.Filter) []storage.Record {
	h.t.Helper()
	f.Limit = 100
	page, err := h.engine.List(h.ctx(), h.now, h.queue, f)
	assert.NoError(h.t, err)
	return page.Records
}

// R19: nothing is kept where nobody asked for it.
func r19Off(t *testing.T, h *harness) {
	h.work(storage.Record{ID: "a"}, storage.Ack)
	h.gone("a")
	assert.Equal(t, h.stats().Done, int64(0))
}

// R19: an acknowledged record is kept whole, found by its id, listed and purged.
func r19Done(t *testing.T, h *harness) {
	h.configure(storage.ConfigEdit{RetainFor: new(2 * unit)})
	h.work(storage.Record{ID: "a", Key: "k", Body: []byte("x"), Headers: map[string]string{"h": "v"}}, storage.Ack)
	r := h.get("a")
	assert.Equal(t, r.State, storage.Done)
	assert.Equal(t, []any{r.Key, string(r.Body), r.Headers["h"], r.Attempts, r.Lease}, []any{"k", "x", "v", 1, storage.Lease{}})
	assert.Equal(t, h.list(storage.Filter{State: storage.Done}), []storage.Record{r})
	st := h.stats()
	assert.Equal(t, []int64{st.Done, st.Total.Acked, st.Total.Retained, st.Keys}, []int64{1, 1, 1, 0})
	AddsUp(t, st)
	h.until(r.Finished.Add(2 * unit))
	h.gone("a")
	assert.Equal(t, h.stats().Total.Trimmed, int64(1))
	AddsUp(t, h.stats())

	h.work(storage.Record{ID: "b"}, storage.Ack)
	b, err := h.engine.Purge(h.ctx(), h.now, h.queue, storage.Filter{State: storage.Done, Limit: 10})
	assert.NoError(t, err)
	assert.Equal(t, b.Count, 1)
	h.gone("b")
	AddsUp(t, h.stats())
}

// R19: what is kept is bounded by number and by bytes, and by nothing once it is switched off.
func r19Limits(t *testing.T, h *harness) {
	h.configure(storage.ConfigEdit{RetainCount: new(3)})
	for i := range 5 {
		h.work(storage.Record{ID: fmt.Sprint(i), Body: []byte(strings.Repeat("x", 10))}, storage.Ack)
	}
	assert.Equal(t, ids(h.list(storage.Filter{State: storage.Done})), []string{"2", "3", "4"})
	h.configure(storage.ConfigEdit{RetainCount: new(0), RetainBytes: new(int64(25))})
	assert.Equal(t, ids(h.list(storage.Filter{State: storage.Done})), []string{"3", "4"})
	h.work(storage.Record{ID: "huge", Body: []byte(strings.Repeat("x", 100))}, storage.Ack)
	assert.Equal(t, len(h.list(storage.Filter{State: storage.Done})), 0)
	h.work(storage.Record{ID: "small"}, storage.Ack)
	h.configure(storage.ConfigEdit{RetainBytes: new(int64(0))})
	st := h.stats()
	assert.Equal(t, []int64{st.Done, st.Total.Trimmed, st.Total.Retained}, []int64{0, 7, 7})
	AddsUp(t, st)
}

// R19: a record that is done is no obstacle to its id, and cannot be changed.
func r19DoneBlocksNoID(t *testing.T, h *harness) {
	h.configure(storage.ConfigEdit{RetainCount: new(10)})
	h.work(storage.Record{ID: "a", DedupFor: time.Minute}, storage.Ack)
	assert.Equal(t, h.try(storage.Record{ID: "a"})[0].Outcome, storage.Duplicate)
	h.pass(time.Minute)
	assert.ErrorIs(t, h.engine.Cancel(h.ctx(), h.now, h.queue, "a", true), storage.ErrConflict)
	_, err := h.engine.Edit(h.ctx(), h.now, h.queue, "a", storage.Edit{Delay: new(time.Second)})
	assert.ErrorIs(t, err, storage.ErrConflict)
	_, err = h.engine.Redrive(h.ctx(), h.now, h.queue, storage.Filter{State: storage.Dead, ID: "a", Limit: 1})
	assert.ErrorIs(t, err, storage.ErrNotFound)

	h.work(storage.Record{ID: "a"}, storage.Bury)
	h.work(storage.Record{ID: "a"}, storage.Ack)
	assert.Equal(t, h.get("a").State, storage.Done)
	assert.Equal(t, h.get("a").Seq, int64(3))
	b, err := h.engine.Redrive(h.ctx(), h.now, h.queue, storage.Filter{State: storage.Dead, ID: "a", Limit: 1})
	assert.NoError(t, err)
	assert.Equal(t, b.Count, 1)
	assert.Equal(t, h.get("a").State, storage.Ready)
	assert.Equal(t, len(h.list(storage.Filter{State: storage.Done, ID: "a"})), 2)
	AddsUp(t, h.stats())
}

// R19: dead records beyond the limits are removed and counted.
func r19DeadLimits(t *testing.T, h *harness) {
	for i := range 4 {
		h.work(storage.Record{ID: fmt.Sprint(i)}, storage.Bury)
		h.pass(time.Second)
	}
	h.configure(storage.ConfigEdit{DeadCount: new(3)})
	assert.Equal(t, ids(h.list(storage.Filter{State: storage.Dead})), []string{"1", "2", "3"})
	h.configure(storage.ConfigEdit{DeadCount: new(0), DeadFor: new(2 * time.Second)})
	assert.Equal(t, ids(h.list(storage.Filter{State: storage.Dead})), []string{"3"})
	h.gone("1")
	assert.Equal(t, h.stats().Total.Trimmed, int64(3))
	AddsUp(t, h.stats())
}

// R19: who is to be told of every death finds those that nobody has told.
func r19Told(t *testing.T, h *harness) {
	h.work(storage.Record{ID: "before"}, storage.Bury)
	h.configure(storage.ConfigEdit{TellDead: new(true)})
	for _, id := range []string{"a", "b", "c"} {
		h.work(storage.Record{ID: id}, storage.Bury)
	}
	untold := storage.Filter{State: storage.Dead, Untold: true}
	found := h.list(untold)
	assert.Equal(t, ids(found), []string{"a", "b", "c"})
	assert.True(t, found[0].Untold)
	assert.True(t, !h.get("before").Untold)
	told := []storage.DeadID{{ID: "a", Seq: found[0].Seq}, {ID: "c", Seq: 99}, {ID: "nobody", Seq: 1}}
	assert.NoError(t, h.engine.Told(h.ctx(), h.queue, told))
	assert.NoError(t, h.engine.Told(h.ctx(), h.queue, told))
	assert.Equal(t, ids(h.list(untold)), []string{"b", "c"})
	_, err := h.engine.Redrive(h.ctx(), h.now, h.queue, storage.Filter{State: storage.Dead, ID: "b", Limit: 1})
	assert.NoError(t, err)
	assert.True(t, !h.get("b").Untold)
	_, err = h.engine.Purge(h.ctx(), h.now, h.queue, storage.Filter{State: storage.Dead, ID: "c", Limit: 10})
	assert.NoError(t, err)
	assert.Equal(t, len(h.list(untold)), 0)
	assert.ErrorIs(t, h.engine.Told(h.ctx(), h.queue, []storage.DeadID{{ID: "a"}}), storage.ErrInvalid)
	_, err = h.engine.List(h.ctx(), h.now, h.queue, storage.Filter{State: storage.Ready, Untold: true, Limit: 1})
	assert.ErrorIs(t, err, storage.ErrInvalid)
}

// The history keeps the latest attempts that failed, whoever failed, with shortened reasons.
func r19History(t *testing.T, h *harness) {
	h.enqueue(storage.Record{ID: "a"})
	for i := range storage.MaxHistory + 2 {
		r := h.claimOne(time.Minute)
		h.must(h.settle(r, storage.Retry, 0, fmt.Sprint(i, strings.Repeat("é", storage.MaxNote))))
		h.pass(time.Second)
	}
	h.must(h.settle(h.claimOne(time.Minute), storage.Release, 0, "not now"))
	history := h.get("a").History
	assert.Equal(t, len(history), storage.MaxHistory)
	first := history[0]
	assert.Equal(t, []any{first.Delivery, first.By, first.Ended}, []any{3, "tester", epoch.Add(2 * time.Second)})
	assert.True(t, len(first.Reason) <= storage.MaxNote && len(first.Reason) > storage.MaxNote-2, first.Reason)
	h.until(h.claimOne(time.Second).Lease.Until)
	h.claimOne(time.Second)
	history = h.get("a").History
	assert.Equal(t, history[len(history)-1].Reason, storage.ReasonLeaseEnded)
	assert.Equal(t, history[len(history)-1].Ended, h.now)
}
