// SPDX-License-Identifier: Apache-2.0

package storagetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/storage"
)

var orderRules = []rule{
	{name: "R03ClaimOrder", test: r03ClaimOrder},
	{name: "R03Arrival", test: r03Arrival},
	{name: "R03RetriesByDue", test: r03RetriesByDue},
	{name: "R03Limits", test: r03Limits},
	{name: "R03Next", test: r03Next},
}

// R3: claim order is priority, then due time, then arrival.
func r03ClaimOrder(t *testing.T, h *harness) {
	h.enqueue(
		storage.Record{ID: "late", Due: h.now.Add(-1 * time.Second)},
		storage.Record{ID: "early", Due: h.now.Add(-2 * time.Second)},
		storage.Record{ID: "urgent", Due: h.now, Priority: 9},
		storage.Record{ID: "middle", Due: h.now, Priority: 5},
		storage.Record{ID: "future", Due: h.now.Add(time.Millisecond), Priority: 9},
	)
	c := h.claim(10, time.Minute)
	assert.Equal(t, ids(c.Records), []string{"urgent", "middle", "early", "late"})
	assert.Equal(t, c.Next, time.Millisecond)
}

// R3: records due at one instant come in order of arrival, also across digits of the sequence.
func r03Arrival(t *testing.T, h *harness) {
	const n = 300
	var want []string
	for i := range n {
		id := fmt.Sprintf("%d", n-i) // ids sort the other way
		want = append(want, id)
		h.enqueue(storage.Record{ID: id, Due: h.now})
	}
	var got []string
	for range 3 {
		got = append(got, ids(h.claim(n/3, time.Minute).Records)...)
	}
	assert.Equal(t, got, want)
}

// R3: a retry is placed by its new due time, a release without a delay by the one it had.
func r03RetriesByDue(t *testing.T, h *harness) {
	h.enqueue(storage.Record{ID: "retried"}, storage.Record{ID: "released"}, storage.Record{ID: "snoozed"})
	h.pass(time.Second)
	h.enqueue(storage.Record{ID: "new"})
	for _, r := range h.claim(3, time.Minute).Records {
		switch r.ID {
		case "retried":
			h.pass(time.Second)
			h.must(h.settle(r, storage.Retry, 0, ""))
		case "released":
			h.must(h.settle(r, storage.Release, 0, ""))
		case "snoozed":
			h.must(h.settle(r, storage.Release, time.Second, ""))
		}
	}
	assert.Equal(t, ids(h.claim(10, time.Minute).Records), []string{"released", "new", "retried"})
	h.pass(time.Second)
	assert.Equal(t, ids(h.claim(10, time.Minute).Records), []string{"snoozed"})
}

// R3: a claim stops at its count and at its bytes, though not before the first record.
func r03Limits(t *testing.T, h *harness) {
	for i := range 5 {
		h.enqueue(storage.Record{ID: fmt.Sprint(i), Body: make([]byte, 90), Headers: map[string]string{"12345": "12345"}})
	}
	claim := func(limit, bytes int) storage.Claimed {
		c, err := h.engine.Claim(h.ctx(), h.now, storage.Claim{Queue: h.queue, Limit: limit, MaxBytes: bytes, Lease: time.Minute})
		assert.NoError(t, err)
		return c
	}
	c := claim(10, 1)
	assert.Equal(t, ids(c.Records), []string{"0"})
	assert.Equal(t, c.Next, 0)
	c = claim(10, 299)
	assert.Equal(t, ids(c.Records), []string{"1", "2"})
	assert.Equal(t, c.Next, 0)
	c = claim(1, 0)
	assert.Equal(t, ids(c.Records), []string{"3"})
	assert.Equal(t, c.Next, 0)
	c = claim(1, 100)
	assert.Equal(t, ids(c.Records), []string{"4"})
	assert.Equal(t, c.Next, time.Minute, "the leases end next")
}

// R3: Next is the least of what will be due and what leases will end; Forever if there is neither.
func r03Next(t *testing.T, h *harness) {
	assert.Equal(t, h.claimNone().Next, storage.Forever)
	h.enqueue(storage.Record{ID: "a", Delay: time.Hour, Priority: 3}, storage.Record{ID: "b"})
	assert.Equal(t, h.claim(1, 2*time.Hour).Next, time.Hour)
	h.enqueue(storage.Record{ID: "c"})
	assert.Equal(t, h.claim(1, time.Minute).Next, time.Minute)
	h.pass(time.Second)
	assert.Equal(t, h.claimNone().Next, time.Minute-time.Second)
}
