// SPDX-License-Identifier: Apache-2.0

package storagetest

import (
	"testing"
	"time"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/storage"
)

var dueRules = []rule{
	{name: "R02Due", timed: true, test: r02Due},
	{name: "R02RoundedUp", test: r02RoundedUp},
	{name: "R02PastIsNow", timed: true, test: r02PastIsNow},
	{name: "R02ExplicitInstantsLeaveTheClock", test: r02ExplicitInstantsLeaveTheClock},
	{name: "R02RetryDelay", timed: true, test: r02RetryDelay},
}

// R2: a record is claimable from its due time on, and Next says when that is.
func r02Due(t *testing.T, h *harness) {
	due := h.enqueue(storage.Record{ID: "a", Delay: unit})[0].Due
	c := h.claim(1, time.Minute)
	if c.Now.Before(due) {
		assert.Equal(t, len(c.Records), 0)
		assert.Equal(t, c.Next, due.Sub(c.Now))
		if !h.own {
			h.counts(1, 0, 0, 0)
			assert.Equal(t, h.get("a").State, storage.Delayed)
			h.now = due.Add(-time.Millisecond)
			assert.Equal(t, h.claimNone().Next, time.Millisecond)
		}
		h.until(due)
		c = h.claim(1, time.Minute)
	}
	assert.Equal(t, ids(c.Records), []string{"a"})
	assert.True(t, !c.Now.Before(due), "early: claimed at", c.Now, "due", due)
}

// R2: due times and delays are rounded up, instants down.
func r02RoundedUp(t *testing.T, h *harness) {
	start := h.now
	h.now = start.Add(999 * time.Microsecond)
	results := h.enqueue(
		storage.Record{ID: "delay", Delay: 1},
		storage.Record{ID: "due", Due: start.Add(time.Nanosecond)},
		storage.Record{ID: "whole", Due: start.Add(time.Millisecond)},
	)
	for _, r := range results {
		assert.Equal(t, r.Due, start.Add(time.Millisecond))
		assert.Equal(t, r.Now, start)
	}
	h.claimNone()
	h.now = start.Add(time.Millisecond)
	assert.Equal(t, len(h.claim(10, time.Microsecond*1500).Records), 3)
	assert.Equal(t, h.get("due").Lease.Until, h.now.Add(2*time.Millisecond), "leases are rounded up too")
}

// R2: a due time in the past means now, and keeps its place.
func r02PastIsNow(t *testing.T, h *harness) {
	h.enqueue(
		storage.Record{ID: "now"},
		storage.Record{ID: "an hour ago", Due: h.instant().Add(-time.Hour)},
		storage.Record{ID: "before 1970", Due: time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC)},
	)
	c := h.claim(10, time.Minute)
	assert.Equal(t, ids(c.Records), []string{"before 1970", "an hour ago", "now"})
	assert.Equal(t, c.Records[0].Due, time.UnixMilli(0).UTC())
}

// R2: explicit instants do not move the engine's own clock.
func r02ExplicitInstantsLeaveTheClock(t *testing.T, h *harness) {
	h.now = time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC)
	h.enqueue(storage.Record{ID: "far", Delay: time.Hour})
	h.claimNone()
	h.now = time.Time{}
	c := h.claimNone()
	assert.True(t, c.Now.Year() < 2099, "the engine's clock followed an explicit instant to", c.Now)
	assert.Equal(t, h.stats().Total.ClockSteps, 0)
}

// R2: the delay of a retry counts from the settlement.
func r02RetryDelay(t *testing.T, h *harness) {
	h.enqueue(storage.Record{ID: "a"})
	h.must(h.settle(h.claimOne(time.Minute), storage.Retry, unit, "failed"))
	due := h.get("a").Due
	h.until(due.Add(-time.Millisecond))
	if c := h.claim(1, time.Minute); c.Now.Before(due) {
		assert.Equal(t, len(c.Records), 0)
		h.until(due)
		h.claimOne(time.Minute)
	}
}
