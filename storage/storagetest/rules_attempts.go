// SPDX-License-Identifier: Apache-2.0

package storagetest

import (
	"strings"
	"testing"
	"time"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/storage"
)

var attemptRules = []rule{
	{name: "R07LastRetry", test: r07LastRetry},
	{name: "R07LastLease", timed: true, test: r07LastLease},
	{name: "R07Release", test: r07Release},
	{name: "R07Return", test: r07Return},
	{name: "R07MaxDeliveries", timed: true, test: r07MaxDeliveries},
	{name: "R07Bury", test: r07Bury},
	{name: "R07Reasons", test: r07Reasons},
}

// R7: a record whose last attempt ends in retry is dead.
func r07LastRetry(t *testing.T, h *harness) {
	h.enqueue(storage.Record{ID: "a", MaxAttempts: 3, Body: []byte("x")})
	for range 2 {
		h.must(h.settle(h.claimOne(time.Minute), storage.Retry, 0, "again"))
	}
	r := h.claimOne(time.Minute)
	h.pass(time.Second)
	h.must(h.settle(r, storage.Retry, time.Hour, "the last"))
	h.counts(0, 0, 0, 1)
	dead := h.get("a")
	assert.Equal(t, dead, storage.Record{
		ID: "a", Seq: 1, Body: []byte("x"), MaxAttempts: 3, State: storage.Dead, Attempts: 3, Deliveries: 3,
		Due: r.Due, FirstDue: r.FirstDue, Enqueued: r.Enqueued, Finished: h.now, Reason: "the last",
		History: []storage.Attempt{
			{Delivery: 1, Ended: epoch, By: "tester", Reason: "again"},
			{Delivery: 2, Ended: epoch, By: "tester", Reason: "again"},
			{Delivery: 3, Ended: h.now, By: "tester", Reason: "the last"},
		},
	})
	h.pass(2 * time.Hour)
	assert.Equal(t, h.claimNone().Next, storage.Forever)
}

// R7: a record whose last attempt ends with its lease is dead, so a poison message cannot loop.
func r07LastLease(t *testing.T, h *harness) {
	h.enqueue(storage.Record{ID: "a", MaxAttempts: 2})
	h.until(h.claimOne(unit).Lease.Until)
	r := h.claimOne(unit)
	h.until(r.Lease.Until)
	h.claimNone()
	dead := h.get("a")
	assert.Equal(t, dead.State, storage.Dead)
	assert.Equal(t, dead.Reason, storage.ReasonLeaseEnded)
	assert.Equal(t, dead.Finished, r.Lease.Until)
	assert.Equal(t, dead.Attempts, 2)
	h.counts(0, 0, 0, 1)
}

// R7: a release gives its attempt back and keeps its delivery.
func r07Release(t *testing.T, h *harness) {
	h.enqueue(storage.Record{ID: "a", MaxAttempts: 1})
	for i := 1; i <= 5; i++ {
		r := h.claimOne(time.Minute)
		assert.Equal(t, []int{r.Attempts, r.Deliveries}, []int{1, i})
		h.must(h.settle(r, storage.Release, 0, ""))
		assert.Equal(t, h.get("a").Attempts, 0)
	}
	h.must(h.settle(h.claimOne(time.Minute), storage.Retry, 0, ""))
	h.counts(0, 0, 0, 1)
}

// R7: a return gives attempt and delivery back: the record is as it was before the claim, however
// few deliveries it may have.
func r07Return(t *testing.T, h *harness) {
	h.configure(storage.ConfigEdit{MaxDeliveries: new(2)})
	h.enqueue(storage.Record{ID: "new", MaxAttempts: 1})
	h.enqueue(storage.Record{ID: "tried", MaxAttempts: 2, Delay: unit})
	untouched := h.get("new")
	for range 5 {
		r := h.claimOne(time.Minute)
		assert.Equal(t, []int{r.Attempts, r.Deliveries}, []int{1, 1})
		h.must(h.settle(r, storage.Return, 0, ""))
		assert.Equal(t, h.get("new"), untouched)
	}
	assert.Equal(t, h.stats().Total.Released, 5)
	h.must(h.settle(h.claimOne(time.Minute), storage.Ack, 0, ""))
	h.pass(unit)
	h.must(h.settle(h.claimOne(time.Minute), storage.Retry, 0, "failed"))
	tried := h.get("tried")
	for range 5 {
		r := h.claimOne(time.Minute)
		assert.Equal(t, []int{r.Attempts, r.Deliveries}, []int{2, 2})
		h.must(h.settle(r, storage.Return, 0, ""))
		assert.Equal(t, h.get("tried"), tried)
	}
}

// R7: a queue may bound deliveries, so that releases cannot loop.
func r07MaxDeliveries(t *testing.T, h *harness) {
	h.configure(storage.ConfigEdit{MaxDeliveries: new(2)})
	end := map[string]func(r storage.Record){
		"released": func(r storage.Record) { h.must(h.settle(r, storage.Release, 0, "not now")) },
		"retried":  func(r storage.Record) { h.must(h.settle(r, storage.Retry, 0, "failed")) },
		"lapsed":   func(r storage.Record) { h.until(r.Lease.Until) },
	}
	for id, ends := range end {
		h.enqueue(storage.Record{ID: id})
		ends(h.claimOne(unit))
		ends(h.claimOne(unit))
		h.claimNone()
		dead := h.get(id)
		assert.Equal(t, dead.State, storage.Dead, id)
		assert.Equal(t, dead.Reason, storage.ReasonMaxDeliveries, id)
		assert.Equal(t, dead.Deliveries, 2)
	}
	h.enqueue(storage.Record{ID: "attempts", MaxAttempts: 2})
	h.must(h.settle(h.claimOne(time.Minute), storage.Retry, 0, "first"))
	h.must(h.settle(h.claimOne(time.Minute), storage.Retry, 0, "second"))
	assert.Equal(t, h.get("attempts").Reason, "second", "its attempts were spent too")
}

// R7: bury gives up at once.
func r07Bury(t *testing.T, h *harness) {
	h.enqueue(storage.Record{ID: "a"})
	h.must(h.settle(h.claimOne(time.Minute), storage.Bury, 0, "hopeless"))
	dead := h.get("a")
	assert.Equal(t, dead.State, storage.Dead)
	assert.Equal(t, dead.Reason, "hopeless")
	assert.Equal(t, dead.Lease, storage.Lease{})
	h.claimNone()
}

// R7: the latest reason is kept with the record, cut at the border of a character.
func r07Reasons(t *testing.T, h *harness) {
	h.enqueue(storage.Record{ID: "a"})
	h.must(h.settle(h.claimOne(time.Minute), storage.Retry, 0, "first"))
	assert.Equal(t, h.get("a").Reason, "first")
	h.must(h.settle(h.claimOne(time.Minute), storage.Retry, 0, ""))
	assert.Equal(t, h.get("a").Reason, "first", "an empty reason leaves the last one")
	long := strings.Repeat("\u2603", storage.MaxReason)
	h.must(h.settle(h.claimOne(time.Minute), storage.Release, 0, long))
	assert.Equal(t, h.get("a").Reason, long[:storage.MaxReason/3*3])
	r := h.claimOne(time.Minute)
	assert.Equal(t, r.Reason, long[:storage.MaxReason/3*3], "the next handler may read it")
}
