// SPDX-License-Identifier: Apache-2.0

package storagetest

import (
	"testing"
	"time"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/storage"
)

var byIDRules = []rule{
	{name: "R10Cancel", test: r10Cancel},
	{name: "R10CancelRunning", test: r10CancelRunning},
	{name: "R10Edit", test: r10Edit},
	{name: "R10EditDue", timed: true, test: r10EditDue},
	{name: "R10EditRefused", test: r10EditRefused},
}

// R10: a waiting record is canceled, a leased or finished one refuses.
func r10Cancel(t *testing.T, h *harness) {
	cancel := func(id string) error { return h.engine.Cancel(h.ctx(), h.now, h.queue, id, false) }
	assert.ErrorIs(t, cancel("unknown"), storage.ErrNotFound)
	assert.ErrorIs(t, cancel(""), storage.ErrInvalid)
	h.enqueue(storage.Record{ID: "delayed", Delay: time.Hour}, storage.Record{ID: "ready"})
	assert.NoError(t, cancel("delayed"))
	assert.NoError(t, cancel("ready"))
	assert.ErrorIs(t, cancel("ready"), storage.ErrNotFound)

	h.enqueue(storage.Record{ID: "leased"})
	r := h.claimOne(time.Minute)
	assert.ErrorIs(t, cancel("leased"), storage.ErrConflict)
	h.must(h.settle(r, storage.Bury, 0, ""))
	assert.ErrorIs(t, cancel("leased"), storage.ErrConflict, "dead")
	assert.ErrorIs(t, h.engine.Cancel(h.ctx(), h.now, h.queue, "leased", true), storage.ErrConflict, "dead")
	h.counts(0, 0, 0, 1)
	assert.Equal(t, h.stats().Total.Canceled, 2)
}

// R10: Cancel of a running record revokes its lease; the next Extend or Settle tells the holder.
func r10CancelRunning(t *testing.T, h *harness) {
	h.enqueue(storage.Record{ID: "a"}, storage.Record{ID: "waiting"})
	r := h.claimOne(time.Minute)
	assert.NoError(t, h.engine.Cancel(h.ctx(), h.now, h.queue, "a", true))
	assert.NoError(t, h.engine.Cancel(h.ctx(), h.now, h.queue, "waiting", true))
	h.gone("a")
	assert.True(t, !h.extend(r, time.Minute))
	assert.True(t, !h.settle(r, storage.Ack, 0, ""))
	h.enqueue(storage.Record{ID: "a"})
	assert.True(t, !h.settle(r, storage.Ack, 0, ""), "the receipt is no good for a namesake")
	h.counts(0, 1, 0, 0)
}

// R10: an edit changes what it names, in place.
func r10Edit(t *testing.T, h *harness) {
	h.enqueue(storage.Record{ID: "a", Key: "k", Body: []byte("x"), Headers: map[string]string{"h": "1"}, MaxAttempts: 4, ExpireIn: time.Hour})
	h.must(h.settle(h.claimOne(time.Minute), storage.Retry, time.Minute, "failed"))
	want := h.get("a")
	edit := func(e storage.Edit) {
		got, err := h.engine.Edit(h.ctx(), h.now, h.queue, "a", e)
		assert.NoError(t, err)
		assert.Equal(t, got, want)
		assert.Equal(t, h.get("a"), want)
	}
	edit(storage.Edit{})
	want.Body = []byte("longer body")
	edit(storage.Edit{Body: new([]byte("longer body"))})
	want.Headers = map[string]string{"i": "2"}
	edit(storage.Edit{Headers: new(map[string]string{"i": "2"})})
	want.Priority = 7
	edit(storage.Edit{Priority: new(7)})
	want.Due, want.FirstDue = h.now.Add(time.Hour), h.now.Add(time.Hour)
	edit(storage.Edit{Due: new(h.now.Add(time.Hour - time.Nanosecond))})
	want.Body, want.Headers, want.Priority = nil, nil, 0
	want.Due, want.FirstDue, want.State = h.now, h.now, storage.Ready
	edit(storage.Edit{Delay: new(time.Duration(0)), Body: new([]byte(nil)), Headers: new(map[string]string(nil)), Priority: new(0)})
	r := h.claimOne(time.Minute)
	assert.Equal(t, []int{r.Attempts, r.Deliveries}, []int{2, 2})
	assert.Equal(t, r.Seq, 1)
	h.counts(0, 0, 1, 0)
}

// R10: a rescheduled record comes at its new due time and not at its old one.
func r10EditDue(t *testing.T, h *harness) {
	first := h.enqueue(storage.Record{ID: "a", Delay: unit})[0].Due
	r, err := h.engine.Edit(h.ctx(), h.now, h.queue, "a", storage.Edit{Delay: new(3 * unit)})
	assert.NoError(t, err)
	h.until(first)
	if c := h.claim(1, time.Minute); c.Now.Before(r.Due) {
		assert.Equal(t, len(c.Records), 0)
		h.until(r.Due)
		h.claimOne(time.Minute)
	}
}

// R10: what cannot be edited says why, and is as it was.
func r10EditRefused(t *testing.T, h *harness) {
	edit := func(id string, e storage.Edit) error {
		_, err := h.engine.Edit(h.ctx(), h.now, h.queue, id, e)
		return err
	}
	assert.ErrorIs(t, edit("unknown", storage.Edit{}), storage.ErrNotFound)
	h.enqueue(storage.Record{ID: "a", ExpireIn: time.Minute})
	before := h.get("a")
	assert.ErrorIs(t, edit("a", storage.Edit{Priority: new(10)}), storage.ErrInvalid)
	assert.ErrorIs(t, edit("a", storage.Edit{Delay: new(-time.Second)}), storage.ErrInvalid)
	assert.ErrorIs(t, edit("a", storage.Edit{Due: new(h.now), Delay: new(time.Second)}), storage.ErrInvalid)
	assert.ErrorIs(t, edit("a", storage.Edit{Due: new(time.Time{})}), storage.ErrInvalid)
	assert.ErrorIs(t, edit("a", storage.Edit{Due: new(h.now.AddDate(300, 0, 0))}), storage.ErrInvalid)
	assert.ErrorIs(t, edit("a", storage.Edit{Due: new(h.now.Add(-time.Minute)), Priority: new(3)}), storage.ErrExpired)
	assert.ErrorIs(t, edit("a", storage.Edit{Body: new(make([]byte, storage.DefaultBody+1))}), storage.ErrTooLarge)
	assert.Equal(t, h.get("a"), before)
	r := h.claimOne(time.Minute)
	assert.ErrorIs(t, edit("a", storage.Edit{Priority: new(3)}), storage.ErrConflict)
	h.must(h.settle(r, storage.Bury, 0, ""))
	assert.ErrorIs(t, edit("a", storage.Edit{Priority: new(3)}), storage.ErrConflict)
}
