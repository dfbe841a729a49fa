// SPDX-License-Identifier: Apache-2.0

package storagetest

import (
	"strings"
	"testing"
	"time"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/storage"
)

var enqueueRules = []rule{
	{name: "R01Enqueue", test: r01Enqueue},
	{name: "R01RefusedAlone", test: r01RefusedAlone},
	{name: "R01Repeat", test: r01Repeat},
	{name: "R01SameIDInOneCall", test: r01SameIDInOneCall},
	{name: "R01DedupWindow", timed: true, test: r01DedupWindow},
	{name: "R01WindowEndsWithTheID", test: r01WindowEndsWithTheID},
	{name: "R01RoundTrip", test: r01RoundTrip},
}

// R1: the result says what was stored.
func r01Enqueue(t *testing.T, h *harness) {
	results := h.enqueue(
		storage.Record{ID: "a", Delay: time.Minute},
		storage.Record{ID: "b", Due: h.now.Add(time.Hour)},
		storage.Record{ID: "c"},
	)
	assert.Equal(t, results, []storage.EnqueueResult{
		{Outcome: storage.Stored, Seq: 1, Due: h.now.Add(time.Minute), Now: h.now},
		{Outcome: storage.Stored, Seq: 2, Due: h.now.Add(time.Hour), Now: h.now},
		{Outcome: storage.Stored, Seq: 3, Due: h.now, Now: h.now},
	})
	assert.Equal(t, len(h.try()), 0, "an empty call")
}

// R1: a bad record is refused with the reason, the others are stored.
func r01RefusedAlone(t *testing.T, h *harness) {
	bad := map[string]struct {
		rec  storage.Record
		want error
	}{
		"an empty id":                 {storage.Record{}, storage.ErrInvalid},
		"a long id":                   {storage.Record{ID: strings.Repeat("x", storage.MaxID+1)}, storage.ErrInvalid},
		"a control character":         {storage.Record{ID: "a\nb"}, storage.ErrInvalid},
		"one of the second block":     {storage.Record{ID: "a\u009bb"}, storage.ErrInvalid},
		"bytes that are not UTF-8":    {storage.Record{ID: "a\xff"}, storage.ErrInvalid},
		"a long key":                  {storage.Record{ID: "x", Key: strings.Repeat("x", storage.MaxKey+1)}, storage.ErrInvalid},
		"a priority above 9":          {storage.Record{ID: "x", Priority: 10}, storage.ErrInvalid},
		"a priority below 0":          {storage.Record{ID: "x", Priority: -1}, storage.ErrInvalid},
		"a negative delay":            {storage.Record{ID: "x", Delay: -1}, storage.ErrInvalid},
		"a delay past the limit":      {storage.Record{ID: "x", Delay: storage.MaxDelay + 1}, storage.ErrInvalid},
		"a due time past the limit":   {storage.Record{ID: "x", Due: h.now.AddDate(400, 0, 0)}, storage.ErrInvalid},
		"a due time and a delay":      {storage.Record{ID: "x", Due: h.now, Delay: 1}, storage.ErrInvalid},
		"a negative expiry":           {storage.Record{ID: "x", ExpireIn: -1}, storage.ErrInvalid},
		"a negative dedup window":     {storage.Record{ID: "x", DedupFor: -1}, storage.ErrInvalid},
		"negative attempts":           {storage.Record{ID: "x", MaxAttempts: -1}, storage.ErrInvalid},
		"an unknown OnLive":           {storage.Record{ID: "x", OnLive: 7}, storage.ErrInvalid},
		"a header without a name":     {storage.Record{ID: "x", Headers: map[string]string{"": "v"}}, storage.ErrInvalid},
		"a body over the limit":       {storage.Record{ID: "x", Body: make([]byte, storage.DefaultBody+1)}, storage.ErrTooLarge},
		"headers over the limit":      {storage.Record{ID: "x", Headers: map[string]string{"h": strings.Repeat("x", storage.DefaultBody)}}, storage.ErrTooLarge},
		"an expiry that has passed":   {storage.Record{ID: "x", Due: h.now.Add(-time.Hour), ExpireIn: time.Minute}, storage.ErrExpired},
		"an expiry of just this time": {storage.Record{ID: "x", Due: h.now.Add(-time.Minute), ExpireIn: time.Minute}, storage.ErrExpired},
	}
	stored := int64(0)
	for name, c := range bad {
		results := h.try(storage.Record{ID: "before " + name}, c.rec, storage.Record{ID: "after " + name})
		stored += 2
		assert.Equal(t, outcomes(results), []storage.Outcome{storage.Stored, storage.Refused, storage.Stored}, name)
		assert.ErrorIs(t, results[1].Err, c.want, name)
	}
	h.counts(0, stored, 0, 0)
	h.gone("x")
}

// R1: repeating the call while the id is live stores nothing twice.
func r01Repeat(t *testing.T, h *harness) {
	rec := storage.Record{ID: "a", Body: []byte("first"), Delay: time.Minute}
	first := h.enqueue(rec)[0]
	h.pass(time.Second)
	rec.Body = []byte("second")
	again := h.try(rec)[0]
	assert.Equal(t, again, storage.EnqueueResult{Outcome: storage.Duplicate, Seq: first.Seq, Due: first.Due, Now: h.now})
	assert.Equal(t, string(h.get("a").Body), "first")

	h.pass(time.Minute)
	r := h.claimOne(time.Minute)
	assert.Equal(t, h.try(rec)[0].Outcome, storage.Duplicate, "while it is leased")
	h.must(h.settle(r, storage.Ack, 0, ""))
	assert.Equal(t, h.try(rec)[0].Outcome, storage.Stored, "after the ack, without a window")
}

// R1: records of one call are stored in order, so the second of two namesakes is a duplicate.
func r01SameIDInOneCall(t *testing.T, h *harness) {
	results := h.try(
		storage.Record{ID: "a", Body: []byte("1")},
		storage.Record{ID: "a", Body: []byte("2")},
		storage.Record{ID: "a", Body: []byte("3"), OnLive: storage.Replace},
	)
	assert.Equal(t, outcomes(results), []storage.Outcome{storage.Stored, storage.Duplicate, storage.Replaced})
	assert.Equal(t, string(h.get("a").Body), "3")
	h.counts(0, 1, 0, 0)
}

// R1: the ack of a record with DedupFor holds its id for that long.
func r01DedupWindow(t *testing.T, h *harness) {
	rec := storage.Record{ID: "a", DedupFor: 2 * unit}
	h.enqueue(rec)
	h.must(h.settle(h.claimOne(time.Minute), storage.Ack, 0, ""))
	acked := h.instant()
	if r := h.try(rec)[0]; r.Now.Before(acked.Add(unit)) {
		assert.Equal(t, r.Outcome, storage.Duplicate)
		assert.Equal(t, r.Seq, 0, "nothing live stands in the way")
		h.counts(0, 0, 0, 0)
	}
	h.until(acked.Add(2 * unit))
	assert.Equal(t, h.try(rec)[0].Outcome, storage.Stored, "after the window")
}

// R1: Replace and Rerun store within the window and end it; cancel, expiry and death leave none.
func r01WindowEndsWithTheID(t *testing.T, h *harness) {
	window := func(id string) {
		h.enqueue(storage.Record{ID: id, DedupFor: time.Hour})
		h.must(h.settle(h.claimOne(time.Minute), storage.Ack, 0, ""))
		assert.Equal(t, h.try(storage.Record{ID: id})[0].Outcome, storage.Duplicate)
	}
	for _, mode := range []storage.OnLive{storage.Replace, storage.Rerun} {
		id := mode.String()
		window(id)
		assert.Equal(t, h.try(storage.Record{ID: id, OnLive: mode})[0].Outcome, storage.Stored)
		assert.NoError(t, h.engine.Cancel(h.ctx(), h.now, h.queue, id, false))
		assert.Equal(t, h.try(storage.Record{ID: id, Delay: time.Hour})[0].Outcome, storage.Stored, "after the cancel")
	}
	h.enqueue(storage.Record{ID: "dead", DedupFor: time.Hour})
	h.must(h.settle(h.claimOne(time.Minute), storage.Bury, 0, ""))
	assert.Equal(t, h.try(storage.Record{ID: "dead", Delay: time.Hour})[0].Outcome, storage.Stored, "beside a dead one")
}

// R1: what was put in comes out, to the byte.
func r01RoundTrip(t *testing.T, h *harness) {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	recs := []storage.Record{
		{ID: "plain"},
		{
			ID: "full", Key: "key \u00fc", Priority: 9, Body: every, Headers: map[string]string{"a": "1", "b": "", "\u00fc": "\u2603"},
			Due: h.now.Add(-time.Minute), ExpireIn: time.Hour, MaxAttempts: 7, DedupFor: time.Minute,
		},
		{
			ID: strings.Repeat("i", storage.MaxID), Key: strings.Repeat("k", storage.MaxKey), Body: make([]byte, storage.DefaultBody),
			Delay: storage.MaxDelay, ExpireIn: storage.MaxDelay, MaxAttempts: storage.MaxAttempts, DedupFor: storage.MaxDelay,
		},
		{ID: "{braces} and spaces:*?[]\u2028", Body: []byte("nil"), Due: time.UnixMilli(0)},
	}
	h.enqueue(recs...)
	for i, in := range recs {
		due := in.Due
		if due.IsZero() {
			due = h.now.Add(in.Delay)
		}
		want := in
		want.Seq, want.Enqueued, want.Delay = int64(i+1), h.now, 0
		want.Due, want.FirstDue, want.State = due, due, storage.Ready
		if due.After(h.now) {
			want.State = storage.Delayed
		}
		assert.Equal(t, h.get(in.ID), want)
	}
	claimed := h.claim(10, time.Minute).Records
	assert.Equal(t, ids(claimed), []string{"full", recs[3].ID, "plain"})
	assert.Equal(t, claimed[0].Body, every)
	assert.Equal(t, claimed[0].Headers, recs[1].Headers)
	assert.Equal(t, claimed[0], h.get("full"), "Claim and Get agree")
}
