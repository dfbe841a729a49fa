// SPDX-License-Identifier: Apache-2.0

package storagetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/storage"
)

var identityRules = []rule{
	{name: "IdentityTable", test: identityTable},
	{name: "IdentityReplace", test: identityReplace},
	{name: "IdentitySuccessor", test: identitySuccessor},
	{name: "IdentitySuccessorStays", timed: true, test: identitySuccessorStays},
	{name: "IdentitySuccessorDropped", test: identitySuccessorDropped},
	{name: "IdentityNewest", test: identityNewest},
}

// The table of the package comment, cell by cell.
func identityTable(t *testing.T, h *harness) {
	prepare := map[string]func(id string){
		"delayed": func(id string) { h.enqueue(storage.Record{ID: id, Delay: time.Hour}) },
		"ready":   func(id string) { h.enqueue(storage.Record{ID: id}) },
		"leased": func(id string) {
			h.enqueue(storage.Record{ID: id, Priority: 9})
			h.claimOne(time.Hour)
		},
		"window": func(id string) {
			h.enqueue(storage.Record{ID: id, Priority: 9, DedupFor: time.Hour})
			h.must(h.settle(h.claimOne(time.Hour), storage.Ack, 0, ""))
		},
		"dead": func(id string) {
			h.enqueue(storage.Record{ID: id, Priority: 9})
			h.must(h.settle(h.claimOne(time.Hour), storage.Bury, 0, ""))
		},
		"acked": func(id string) {
			h.enqueue(storage.Record{ID: id, Priority: 9})
			h.must(h.settle(h.claimOne(time.Hour), storage.Ack, 0, ""))
		},
		"unknown": func(string) {},
	}
	want := map[string][3]storage.Outcome{ // Keep, Replace, Rerun
		"delayed": {storage.Duplicate, storage.Replaced, storage.Duplicate},
		"ready":   {storage.Duplicate, storage.Replaced, storage.Duplicate},
		"leased":  {storage.Duplicate, storage.Reran, storage.Reran},
		"window":  {storage.Duplicate, storage.Stored, storage.Stored},
		"dead":    {storage.Stored, storage.Stored, storage.Stored},
		"acked":   {storage.Stored, storage.Stored, storage.Stored},
		"unknown": {storage.Stored, storage.Stored, storage.Stored},
	}
	for state, row := range want {
		for mode, outcome := range row {
			id := fmt.Sprintf("%s/%d", state, mode)
			prepare[state](id)
			got := h.try(storage.Record{ID: id, OnLive: storage.OnLive(mode), Delay: time.Minute})[0]
			assert.Equal(t, got.Outcome, outcome, state, storage.OnLive(mode))
		}
	}
}

// A replacing record brings everything of its own and starts with no attempts.
func identityReplace(t *testing.T, h *harness) {
	h.enqueue(storage.Record{ID: "a", Body: []byte("old"), Priority: 3, Key: "k", MaxAttempts: 5})
	h.must(h.settle(h.claimOne(time.Minute), storage.Retry, time.Minute, "failed"))
	got := h.enqueue(storage.Record{ID: "a", Body: []byte("new"), Delay: time.Hour, OnLive: storage.Replace})[0]
	assert.Equal(t, got, storage.EnqueueResult{Outcome: storage.Replaced, Seq: 2, Due: h.now.Add(time.Hour), Now: h.now})
	due := h.now.Add(time.Hour)
	assert.Equal(t, h.get("a"), storage.Record{
		ID: "a", Seq: 2, Body: []byte("new"), State: storage.Delayed, Due: due, FirstDue: due, Enqueued: h.now,
	})
	h.counts(1, 0, 0, 0)
	h.pass(30 * time.Minute)
	h.claimNone() // not at the old due time
	h.pass(30 * time.Minute)
	assert.Equal(t, h.claimOne(time.Minute).Attempts, 1)
}

// A successor starts when the running record is finished: by ack, bury, expire, its last attempt.
func identitySuccessor(t *testing.T, h *harness) {
	finish := map[string]func(r storage.Record) bool{
		"ack":    func(r storage.Record) bool { return h.settle(r, storage.Ack, 0, "") },
		"bury":   func(r storage.Record) bool { return h.settle(r, storage.Bury, 0, "") },
		"expire": func(r storage.Record) bool { return h.settle(r, storage.Expire, 0, "") },
		"last":   func(r storage.Record) bool { return h.settle(r, storage.Retry, time.Hour, "") },
	}
	for name, end := range finish {
		h.enqueue(storage.Record{ID: name, MaxAttempts: 1, DedupFor: time.Hour})
		r := h.claimOne(time.Minute)
		one := h.try(storage.Record{ID: name, Body: []byte("one"), OnLive: storage.Rerun})[0]
		two := h.try(storage.Record{ID: name, Body: []byte("two"), OnLive: storage.Replace})[0]
		assert.Equal(t, []storage.Outcome{one.Outcome, two.Outcome}, []storage.Outcome{storage.Reran, storage.Reran})
		assert.Equal(t, h.try(storage.Record{ID: name})[0].Outcome, storage.Duplicate)
		assert.True(t, h.get(name).Successor, name)
		h.claimNone()
		before := h.stats().Total.Enqueued
		h.must(end(r))
		assert.Equal(t, h.stats().Total.Enqueued, before+1, "it is counted when it starts")
		next := h.claimOne(time.Minute)
		assert.Equal(t, string(next.Body), "two", "the latest wins")
		assert.Equal(t, next.Seq, two.Seq)
		assert.Equal(t, next.Attempts, 1)
		assert.True(t, !next.Successor)
		h.must(h.settle(next, storage.Ack, 0, ""))
		h.claimNone()
	}
}

// A retry and the end of a lease leave the successor attached; its own due time counts.
func identitySuccessorStays(t *testing.T, h *harness) {
	h.enqueue(storage.Record{ID: "a"})
	r := h.claimOne(time.Minute)
	h.enqueue(storage.Record{ID: "a", Body: []byte("next"), Delay: time.Hour, OnLive: storage.Rerun})
	h.must(h.settle(r, storage.Retry, 0, ""))
	assert.True(t, h.get("a").Successor)
	r = h.claimOne(unit)
	h.until(r.Lease.Until)
	assert.True(t, h.get("a").Successor)
	r = h.claimOne(time.Minute)
	assert.Equal(t, r.Attempts, 3)
	h.must(h.settle(r, storage.Ack, 0, ""))
	h.claimNone()
	assert.Equal(t, string(h.get("a").Body), "next")
	h.counts(1, 0, 0, 0)
}

// Cancel, purge and replace drop the successor with the record.
func identitySuccessorDropped(t *testing.T, h *harness) {
	prepare := func(id string) {
		h.enqueue(storage.Record{ID: id})
		r := h.claimOne(time.Minute)
		h.enqueue(storage.Record{ID: id, Body: []byte("next"), OnLive: storage.Rerun})
		h.must(h.settle(r, storage.Retry, time.Hour, ""))
	}
	prepare("canceled")
	assert.NoError(t, h.engine.Cancel(h.ctx(), h.now, h.queue, "canceled", false))
	h.gone("canceled")

	prepare("purged")
	_, err := h.engine.Purge(h.ctx(), h.now, h.queue, storage.Filter{State: storage.Delayed, Limit: 10})
	assert.NoError(t, err)
	h.gone("purged")

	prepare("replaced")
	h.enqueue(storage.Record{ID: "replaced", OnLive: storage.Replace})
	h.must(h.settle(h.claimOne(time.Minute), storage.Ack, 0, ""))
	h.gone("replaced")

	h.enqueue(storage.Record{ID: "revoked"})
	h.claimOne(time.Minute)
	h.enqueue(storage.Record{ID: "revoked", OnLive: storage.Rerun})
	assert.NoError(t, h.engine.Cancel(h.ctx(), h.now, h.queue, "revoked", true))
	h.gone("revoked")
	h.counts(0, 0, 0, 0)
}

// By-id calls mean the live record, else the newest finished one.
func identityNewest(t *testing.T, h *harness) {
	for i := range 3 {
		h.enqueue(storage.Record{ID: "a", Body: fmt.Append(nil, i)})
		h.must(h.settle(h.claimOne(time.Minute), storage.Bury, 0, fmt.Sprint(i)))
		h.pass(time.Second)
	}
	assert.Equal(t, h.get("a").Reason, "2")
	assert.Equal(t, h.get("a").Seq, 3)
	h.enqueue(storage.Record{ID: "a", Body: []byte("live")})
	assert.Equal(t, string(h.get("a").Body), "live")
	h.counts(0, 1, 0, 3)
}
