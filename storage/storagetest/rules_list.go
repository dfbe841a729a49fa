// SPDX-License-Identifier: Apache-2.0

package storagetest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/storage"
)

var listRules = []rule{
	{name: "List", test: list},
	{name: "ListStates", test: listStates},
	{name: "Purge", test: purge},
	{name: "Redrive", test: redrive},
	{name: "RedriveConflict", test: redriveConflict},
	{name: "Queues", test: queues},
}

var callRules = []rule{
	{name: "InvalidCalls", test: invalidCalls},
	{name: "CanceledContext", test: canceledContext},
	{name: "Ownership", test: ownership},
	{name: "UnknownQueue", test: unknownQueue},
}

// ListAll returns every record that a filter selects, page by page.
func ListAll(t testing.TB, engine storage.Engine, now time.Time, queue string, f storage.Filter) []storage.Record {
	t.Helper()
	var all []storage.Record
	for range 10_000 {
		page, err := engine.List(t.Context(), now, queue, f)
		assert.NoError(t, err)
		assert.True(t, len(page.Records) <= f.Limit)
		all = append(all, page.Records...)
		if !page.More {
			return all
		}
		f.After = page.Last
	}
	t.Fatal("the listing does not end")
	return nil
}

// List: by due time in both directions, by range, by key, by id, in pages.
func list(t *testing.T, h *harness) {
	var want []string
	for i := range 25 {
		id := fmt.Sprintf("m%02d", i)
		want = append(want, id)
		h.enqueue(storage.Record{ID: id, Key: fmt.Sprint("k", i%3), Priority: i % 4, Due: h.now.Add(time.Duration(i/2+1) * time.Minute)})
	}
	all := func(f storage.Filter) []string {
		f.State, f.Limit = storage.Delayed, 4
		return ids(ListAll(t, h.engine, h.now, h.queue, f))
	}
	assert.Equal(t, all(storage.Filter{}), want)
	backward := slices.Clone(want)
	slices.Reverse(backward)
	assert.Equal(t, all(storage.Filter{Desc: true}), backward)
	assert.Equal(t, all(storage.Filter{From: h.now.Add(2 * time.Minute), To: h.now.Add(4 * time.Minute)}), want[2:6])
	assert.Equal(t, all(storage.Filter{From: h.now.Add(2 * time.Minute), To: h.now.Add(4 * time.Minute), Desc: true}), backward[19:23])
	assert.Equal(t, all(storage.Filter{Key: "k1"}), []string{"m01", "m04", "m07", "m10", "m13", "m16", "m19", "m22"})
	assert.Equal(t, all(storage.Filter{ID: "m07"}), []string{"m07"})
	assert.Equal(t, all(storage.Filter{ID: "m07", Key: "k0"}), nil)
	assert.Equal(t, all(storage.Filter{ID: "unknown"}), nil)
}

// List: each state, placed by due time, end of lease, and instant of death.
func listStates(t *testing.T, h *harness) {
	h.enqueue(storage.Record{ID: "late", Due: h.now.Add(-time.Minute)}, storage.Record{ID: "early", Due: h.now.Add(-2 * time.Minute)},
		storage.Record{ID: "delayed", Delay: time.Minute}, storage.Record{ID: "x", Priority: 9}, storage.Record{ID: "y", Priority: 9},
		storage.Record{ID: "d1", Priority: 8}, storage.Record{ID: "d2", Priority: 8})
	recs := h.claim(4, time.Minute).Records
	h.must(h.extend(recs[0], time.Hour))
	h.must(h.settle(recs[3], storage.Bury, 0, "first"))
	h.pass(time.Second)
	h.must(h.settle(recs[2], storage.Bury, 0, "second"))
	for state, want := range map[storage.State][]string{
		storage.Delayed: {"delayed"}, storage.Ready: {"early", "late"}, storage.Leased: {"y", "x"}, storage.Dead: {"d2", "d1"}, storage.Done: {},
	} {
		got := ListAll(t, h.engine, h.now, h.queue, storage.Filter{State: state, Limit: 1})
		assert.Equal(t, ids(got), want, state)
		for _, r := range got {
			assert.Equal(t, r.State, state)
			assert.Equal(t, r, h.get(r.ID), "List and Get agree")
		}
	}
}

// Purge: what the filter selects goes, step by step, and frees its id.
func purge(t *testing.T, h *harness) {
	for i := range 20 {
		h.enqueue(storage.Record{ID: fmt.Sprint(i), Key: fmt.Sprint(i % 2), Delay: time.Duration(i%2) * time.Hour, DedupFor: time.Hour})
	}
	for _, r := range h.claim(4, time.Hour).Records[:2] {
		h.must(h.settle(r, storage.Bury, 0, ""))
	}
	h.counts(10, 6, 2, 2)
	all := func(f storage.Filter) int {
		n := 0
		for range 100 {
			b, err := h.engine.Purge(h.ctx(), h.now, h.queue, f)
			assert.NoError(t, err)
			n += b.Count
			if !b.More {
				break
			}
			f.After = b.Last
		}
		return n
	}
	_, err := h.engine.Purge(h.ctx(), h.now, h.queue, storage.Filter{State: storage.Leased, Limit: 1})
	assert.ErrorIs(t, err, storage.ErrInvalid)
	assert.Equal(t, all(storage.Filter{State: storage.Ready, Key: "1", Limit: 3}), 0)
	assert.Equal(t, all(storage.Filter{State: storage.Ready, Limit: 3}), 6)
	h.counts(10, 0, 2, 2)
	assert.Equal(t, all(storage.Filter{State: storage.Dead, ID: "0", Limit: 3}), 1)
	assert.Equal(t, all(storage.Filter{State: storage.Delayed, From: h.now.Add(2 * time.Hour), Limit: 3}), 0)
	assert.Equal(t, all(storage.Filter{State: storage.Delayed, To: h.now.Add(2 * time.Hour), Limit: 3}), 10)
	h.counts(0, 0, 2, 1)
	assert.Equal(t, h.stats().Total.Purged, 17)
	assert.Equal(t, h.try(storage.Record{ID: "1"})[0].Outcome, storage.Stored)
	AddsUp(t, h.stats())
}

// Redrive: dead records become ready, last in arrival, as new as on their first day.
func redrive(t *testing.T, h *harness) {
	for i := range 5 {
		h.enqueue(storage.Record{ID: fmt.Sprint(i), MaxAttempts: 1, Body: []byte("x"), ExpireIn: time.Hour})
		h.must(h.settle(h.claimOne(time.Minute), storage.Retry, 0, "failed"))
	}
	h.pass(2 * time.Hour)
	_, err := h.engine.Redrive(h.ctx(), h.now, h.queue, storage.Filter{State: storage.Dead, ID: "unknown", Limit: 1})
	assert.ErrorIs(t, err, storage.ErrNotFound)
	_, err = h.engine.Redrive(h.ctx(), h.now, h.queue, storage.Filter{State: storage.Ready, Limit: 1})
	assert.ErrorIs(t, err, storage.ErrInvalid)
	b, err := h.engine.Redrive(h.ctx(), h.now, h.queue, storage.Filter{State: storage.Dead, ID: "3", Limit: 1})
	assert.NoError(t, err)
	assert.Equal(t, b.Count, 1)
	got := h.get("3")
	want := storage.Record{
		ID: "3", Seq: 6, MaxAttempts: 1, Body: []byte("x"), ExpireIn: time.Hour, State: storage.Ready,
		Due: h.now, FirstDue: h.now, Enqueued: epoch, Reason: "failed",
		History: []storage.Attempt{{Delivery: 1, Ended: epoch, By: "tester", Reason: "failed"}},
	}
	assert.Equal(t, got, want)
	b, err = h.engine.Redrive(h.ctx(), h.now, h.queue, storage.Filter{State: storage.Dead, Limit: 2})
	assert.NoError(t, err)
	assert.Equal(t, []any{b.Count, b.More}, []any{2, true})
	b, err = h.engine.Redrive(h.ctx(), h.now, h.queue, storage.Filter{State: storage.Dead, Limit: 10, After: b.Last})
	assert.NoError(t, err)
	assert.Equal(t, []any{b.Count, b.More}, []any{2, false})
	assert.Equal(t, ids(h.claim(10, time.Minute).Records), []string{"3", "0", "1", "2", "4"})
	AddsUp(t, h.stats())
}

// Redrive: a dead record stays where it is while a namesake is live.
func redriveConflict(t *testing.T, h *harness) {
	for range 2 {
		h.enqueue(storage.Record{ID: "a"})
		h.must(h.settle(h.claimOne(time.Minute), storage.Bury, 0, ""))
	}
	all := storage.Filter{State: storage.Dead, Limit: 10}
	b, err := h.engine.Redrive(h.ctx(), h.now, h.queue, all)
	assert.NoError(t, err)
	assert.Equal(t, []int{b.Count, b.Skipped}, []int{1, 1})
	h.counts(0, 1, 0, 1)
	_, err = h.engine.Redrive(h.ctx(), h.now, h.queue, storage.Filter{State: storage.Dead, ID: "a", Limit: 1})
	assert.ErrorIs(t, err, storage.ErrConflict)
	r := h.claimOne(time.Minute)
	b, err = h.engine.Redrive(h.ctx(), h.now, h.queue, all)
	assert.NoError(t, err)
	assert.Equal(t, []int{b.Count, b.Skipped}, []int{0, 1})
	h.must(h.settle(r, storage.Ack, 0, ""))
	b, err = h.engine.Redrive(h.ctx(), h.now, h.queue, all)
	assert.NoError(t, err)
	assert.Equal(t, []int{b.Count, b.Skipped}, []int{1, 0})
}

// Queues: every queue that got a record or a configuration, in order, in pages.
func queues(t *testing.T, h *harness) {
	want := []string{h.queue + ".a", h.queue + ".b", h.queue + ".c"}
	for _, q := range want[:2] {
		_, err := h.engine.Enqueue(h.ctx(), h.now, q, []storage.Record{{ID: "x"}})
		assert.NoError(t, err)
	}
	_, err := h.engine.Configure(h.ctx(), want[2], storage.ConfigEdit{Paused: new(true)})
	assert.NoError(t, err)
	_, err = h.engine.Configure(h.ctx(), h.queue+".read", storage.ConfigEdit{})
	assert.NoError(t, err)
	var got []string
	after := h.queue
	for range 4 {
		page, err := h.engine.Queues(h.ctx(), after, 1)
		assert.NoError(t, err)
		if len(page) == 0 {
			break
		}
		after = page[len(page)-1]
		got = append(got, page...)
	}
	assert.Equal(t, got[:3], want)
	assert.True(t, !slices.Contains(got, h.queue+".read"))
}

// InvalidCalls: what can never work says so, whoever asks.
func invalidCalls(t *testing.T, h *harness) {
	e, ctx := h.engine, h.ctx()
	for _, name := range []string{"", ".dot", "sp ace", "a{b}", "a/b", "\u00fc", string(make([]byte, storage.MaxName+1))} {
		_, err := e.Enqueue(ctx, h.now, name, []storage.Record{{ID: "a"}})
		assert.ErrorIs(t, err, storage.ErrInvalid, name)
		_, err = e.Claim(ctx, h.now, storage.Claim{Queue: name, Limit: 1, Lease: time.Second})
		assert.ErrorIs(t, err, storage.ErrInvalid, name)
		_, err = e.Stats(ctx, h.now, name)
		assert.ErrorIs(t, err, storage.ErrInvalid, name)
		_, err = e.Wait(ctx, []storage.Scope{{Queue: name}}, 0)
		assert.ErrorIs(t, err, storage.ErrInvalid, name)
	}
	for _, now := range []time.Time{time.UnixMilli(-1), time.Date(2101, 1, 1, 0, 0, 0, 0, time.UTC)} {
		_, err := e.Enqueue(ctx, now, h.queue, []storage.Record{{ID: "a"}})
		assert.ErrorIs(t, err, storage.ErrInvalid)
	}
	for _, c := range []storage.Claim{
		{Limit: 0, Lease: time.Second},
		{Limit: -1, Lease: time.Second},
		{Limit: storage.MaxBatch + 1, Lease: time.Second},
		{Limit: 1},
		{Limit: 1, Lease: -1},
		{Limit: 1, Lease: storage.MaxLease + 1},
		{Limit: 1, Lease: time.Second, MaxBytes: -1},
		{Limit: 1, Lease: time.Second, By: "a\x00"},
	} {
		c.Queue = h.queue
		_, err := e.Claim(ctx, h.now, c)
		assert.ErrorIs(t, err, storage.ErrInvalid, c)
	}
	_, err := e.Enqueue(ctx, h.now, h.queue, make([]storage.Record, storage.MaxBatch+1))
	assert.ErrorIs(t, err, storage.ErrInvalid)
	h.enqueue(storage.Record{ID: "a"})
	r := h.claimOne(time.Minute)
	receipt := r.Receipt(h.queue)
	for _, s := range []storage.Settlement{
		{Receipt: receipt},
		{Receipt: receipt, Verdict: 9},
		{Receipt: receipt, Verdict: storage.Retry, Delay: -1},
		{Receipt: receipt, Verdict: storage.Ack, Delay: 1},
		{Receipt: storage.Receipt{Queue: h.queue}, Verdict: storage.Ack},
		{Receipt: storage.Receipt{ID: "a"}, Verdict: storage.Ack},
	} {
		_, err := e.Settle(ctx, h.now, []storage.Settlement{{Receipt: receipt, Verdict: storage.Ack}, s})
		assert.ErrorIs(t, err, storage.ErrInvalid, s)
	}
	_, err = e.Extend(ctx, h.now, 0, []storage.Receipt{receipt})
	assert.ErrorIs(t, err, storage.ErrInvalid)
	for _, f := range []storage.Filter{{Limit: 1}, {State: 99, Limit: 1}, {State: storage.Ready}, {State: storage.Ready, Limit: storage.MaxBatch + 1}} {
		_, err := e.List(ctx, h.now, h.queue, f)
		assert.ErrorIs(t, err, storage.ErrInvalid, f)
	}
	_, err = e.Queues(ctx, "", 0)
	assert.ErrorIs(t, err, storage.ErrInvalid)
	_, err = e.Repair(ctx, h.now, h.queue, storage.Repair{})
	assert.ErrorIs(t, err, storage.ErrInvalid)
	h.must(h.settle(r, storage.Ack, 0, "")) // nothing was settled by the invalid calls
}

// CanceledContext: a call whose context has ended says so.
func canceledContext(t *testing.T, h *harness) {
	ctx, cancel := context.WithCancel(h.ctx())
	cancel()
	_, err := h.engine.Enqueue(ctx, h.now, h.queue, []storage.Record{{ID: "a"}})
	assert.ErrorIs(t, err, context.Canceled)
	_, err = h.engine.Claim(ctx, h.now, storage.Claim{Queue: h.queue, Limit: 1, Lease: time.Second})
	assert.ErrorIs(t, err, context.Canceled)
	_, err = h.engine.Settle(ctx, h.now, []storage.Settlement{{Receipt: storage.Receipt{Queue: h.queue, ID: "a"}, Verdict: storage.Ack}})
	assert.ErrorIs(t, err, context.Canceled)
	_, err = h.engine.Stats(ctx, h.now, h.queue)
	assert.ErrorIs(t, err, context.Canceled)
	h.gone("a")
}

// Ownership: the engine keeps nothing of the caller's, and the caller may change what it got.
func ownership(t *testing.T, h *harness) {
	body, headers := []byte("body"), map[string]string{"h": "1"}
	h.enqueue(storage.Record{ID: "a", Body: body, Headers: headers})
	body[0], headers["h"] = 'X', "2"
	got := h.get("a")
	assert.Equal(t, string(got.Body), "body")
	got.Body[0], got.Headers["h"] = 'Y', "3"
	r := h.claimOne(time.Minute)
	assert.Equal(t, string(r.Body), "body")
	assert.Equal(t, r.Headers, map[string]string{"h": "1"})
}

// UnknownQueue: a queue that nobody has used is empty, and asking does not create it.
func unknownQueue(t *testing.T, h *harness) {
	h.claimNone()
	h.gone("a")
	assert.Equal(t, Comparable(h.stats()), storage.Stats{Now: h.now})
	assert.Equal(t, ListAll(t, h.engine, h.now, h.queue, storage.Filter{State: storage.Ready, Limit: 1}), nil)
	assert.Equal(t, RepairAll(t, h.engine, h.now, h.queue, 10, false), nil)
	names, err := h.engine.Queues(h.ctx(), h.queue[:len(h.queue)-1], storage.MaxBatch)
	assert.NoError(t, err)
	assert.True(t, !slices.Contains(names, h.queue))
}
