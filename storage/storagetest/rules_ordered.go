// SPDX-License-Identifier: Apache-2.0

package storagetest

import (
	"testing"
	"time"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/storage"
)

var orderedRules = []rule{
	{name: "R11OneAfterTheOther", timed: true, test: r11OneAfterTheOther},
	{name: "R11RetryHoldsBack", timed: true, test: r11RetryHoldsBack},
	{name: "R11LeaseEndHoldsBack", timed: true, test: r11LeaseEndHoldsBack},
	{name: "R11NotDueHoldsNobodyBack", test: r11NotDueHoldsNobodyBack},
	{name: "R11FinishedHoldsNobodyBack", test: r11FinishedHoldsNobodyBack},
	{name: "R11RedriveIsLast", test: r11RedriveIsLast},
	{name: "R11Run", timed: true, test: r11Run},
	{name: "R11RunIsGivenBack", test: r11RunIsGivenBack},
	{name: "R11RunIsSettledInOrder", test: r11RunIsSettledInOrder},
	{name: "R11RunOfACrash", timed: true, test: r11RunOfACrash},
	{name: "R11Refuses", test: r11Refuses},
	{name: "R11HeldBackIsNoRun", test: r11HeldBackIsNoRun},
}

func (h *harness) ordered() { h.configure(storage.ConfigEdit{Ordered: new(true)}) }

// R11: a key has one running record, others go on.
func r11OneAfterTheOther(t *testing.T, h *harness) {
	h.ordered()
	h.enqueue(keyed("a", 3)...)
	h.enqueue(keyed("b", 2)...)
	h.enqueue(storage.Record{ID: "x"}, storage.Record{ID: "y"})
	first := h.claim(10, time.Minute)
	assert.Equal(t, ids(first.Records), []string{"a0", "b0", "x", "y"})
	h.claimNone()
	h.must(h.settle(first.Records[1], storage.Ack, 0, ""))
	assert.Equal(t, ids(h.claim(10, time.Minute).Records), []string{"b1"})
	h.must(h.settle(first.Records[0], storage.Ack, 0, ""))
	assert.Equal(t, ids(h.claim(10, time.Minute).Records), []string{"a1"})
}

// R11: a retry or release keeps its place and holds its key back.
func r11RetryHoldsBack(t *testing.T, h *harness) {
	h.ordered()
	h.enqueue(keyed("a", 2)...)
	for _, v := range []storage.Verdict{storage.Retry, storage.Release} {
		h.must(h.settle(h.claimOne(time.Minute), v, unit, ""))
		assert.True(t, h.claimNone().Next <= unit)
		h.pass(unit)
	}
	r := h.claimOne(time.Minute)
	assert.Equal(t, r.ID, "a0")
	h.must(h.settle(r, storage.Ack, 0, ""))
	assert.Equal(t, h.claimOne(time.Minute).ID, "a1")
}

// R11: so does the end of a lease.
func r11LeaseEndHoldsBack(t *testing.T, h *harness) {
	h.ordered()
	h.enqueue(keyed("a", 2)...)
	h.until(h.claimOne(unit).Lease.Until)
	assert.Equal(t, ids(h.claim(10, time.Minute).Records), []string{"a0"})
}

// R11: the order is that of due times, and what is not due holds nobody back, also if it came first.
func r11NotDueHoldsNobodyBack(t *testing.T, h *harness) {
	h.ordered()
	h.enqueue(
		storage.Record{ID: "later", Key: "k", Delay: time.Minute},
		storage.Record{ID: "now", Key: "k"},
		storage.Record{ID: "before", Key: "k", Due: h.now.Add(-time.Second)},
	)
	for _, want := range []string{"before", "now"} {
		r := h.claimOne(time.Minute)
		assert.Equal(t, r.ID, want)
		h.must(h.settle(r, storage.Ack, 0, ""))
	}
	assert.Equal(t, h.claimNone().Next, time.Minute)
	_, err := h.engine.Edit(h.ctx(), h.now, h.queue, "later", storage.Edit{Delay: new(time.Second)})
	assert.NoError(t, err)
	assert.Equal(t, h.claimNone().Next, time.Second)
}

// R11: what is dead, expired, canceled or dropped holds nobody back.
func r11FinishedHoldsNobodyBack(t *testing.T, h *harness) {
	h.ordered()
	h.enqueue(
		storage.Record{ID: "dead", Key: "k", MaxAttempts: 1}, storage.Record{ID: "expired", Key: "k", ExpireIn: time.Second},
		storage.Record{ID: "canceled", Key: "k"}, storage.Record{ID: "running", Key: "k"}, storage.Record{ID: "last", Key: "k"},
	)
	h.must(h.settle(h.claimOne(time.Minute), storage.Retry, time.Hour, ""))
	h.pass(time.Second)
	assert.NoError(t, h.engine.Cancel(h.ctx(), h.now, h.queue, "canceled", false))
	assert.Equal(t, h.claimOne(time.Minute).ID, "running")
	assert.NoError(t, h.engine.Cancel(h.ctx(), h.now, h.queue, "running", true))
	assert.Equal(t, h.claimOne(time.Minute).ID, "last")
}

// R11: a redriven record comes after those that wait.
func r11RedriveIsLast(t *testing.T, h *harness) {
	h.ordered()
	h.enqueue(keyed("k", 3)...)
	h.must(h.settle(h.claimOne(time.Minute), storage.Bury, 0, ""))
	h.pass(time.Second)
	_, err := h.engine.Redrive(h.ctx(), h.now, h.queue, storage.Filter{State: storage.Dead, ID: "k0", Limit: 1})
	assert.NoError(t, err)
	assert.Equal(t, ids(h.claimAs(storage.Claim{Limit: 10, Group: true}).Records), []string{"k1", "k2", "k0"})
}

// R11: a claim for a group gets a run in order, and nothing of the key is claimable until all of it
// is finished.
func r11Run(t *testing.T, h *harness) {
	h.ordered()
	h.enqueue(keyed("k", 5)...)
	run := h.claimAs(storage.Claim{Limit: 3, Group: true}).Records
	assert.Equal(t, ids(run), []string{"k0", "k1", "k2"})
	for _, r := range run {
		h.claimNone()
		h.must(h.settle(r, storage.Ack, 0, ""))
	}
	assert.Equal(t, ids(h.claimAs(storage.Claim{Limit: 3, Group: true}).Records), []string{"k3", "k4"})
}

// R11: a record of a run that waits again takes those behind it along, attempts unspent.
func r11RunIsGivenBack(t *testing.T, h *harness) {
	h.ordered()
	h.enqueue(keyed("k", 4)...)
	run := h.claimAs(storage.Claim{Limit: 4, Group: true}).Records
	lost, err := h.engine.Settle(h.ctx(), h.now, h.each(run, storage.Ack, storage.Retry, storage.Ack, storage.Ack))
	assert.NoError(t, err)
	assert.Equal(t, lost, []storage.Receipt{run[2].Receipt(h.queue), run[3].Receipt(h.queue)})
	h.counts(0, 3, 0, 0)
	st := h.stats()
	assert.Equal(t, []int64{st.Total.Acked, st.Total.Retried, st.Total.Released}, []int64{1, 1, 2})
	run = h.claimAs(storage.Claim{Limit: 4, Group: true}).Records
	assert.Equal(t, ids(run), []string{"k1", "k2", "k3"})
	assert.Equal(t, []int{run[0].Attempts, run[1].Attempts, run[2].Attempts}, []int{2, 1, 1})
	assert.Equal(t, []int{run[0].Deliveries, run[1].Deliveries}, []int{2, 2})
	AddsUp(t, h.stats())
}

// each settles a run with one verdict each.
func (h *harness) each(run []storage.Record, verdicts ...storage.Verdict) []storage.Settlement {
	ss := make([]storage.Settlement, len(run))
	for i, r := range run {
		ss[i] = storage.Settlement{Receipt: r.Receipt(h.queue), Verdict: verdicts[i]}
	}
	return ss
}

// R11: settlements count in the order of the call: a later record of a run that is acknowledged first is
// finished, whatever becomes of those before it.
func r11RunIsSettledInOrder(t *testing.T, h *harness) {
	h.ordered()
	h.enqueue(keyed("k", 4)...)
	run := h.claimAs(storage.Claim{Limit: 4, Group: true}).Records
	ss := h.each(run, storage.Ack, storage.Retry, storage.Ack, storage.Ack)
	lost, err := h.engine.Settle(h.ctx(), h.now, []storage.Settlement{ss[2], ss[1], ss[0], ss[3]})
	assert.NoError(t, err)
	assert.Equal(t, lost, []storage.Receipt{run[3].Receipt(h.queue)})
	assert.Equal(t, ids(h.claimAs(storage.Claim{Limit: 4, Group: true}).Records), []string{"k1", "k3"})
	AddsUp(t, h.stats())
}

// R11: a consumer that crashes with a run spends an attempt of the first record only.
func r11RunOfACrash(t *testing.T, h *harness) {
	h.ordered()
	h.enqueue(keyed("k", 3)...)
	c, err := h.engine.Claim(h.ctx(), h.now, storage.Claim{Queue: h.queue, Limit: 3, Lease: unit, Group: true})
	assert.NoError(t, err)
	h.until(c.Records[0].Lease.Until)
	run := h.claimAs(storage.Claim{Limit: 3, Group: true}).Records
	assert.Equal(t, ids(run), []string{"k0", "k1", "k2"})
	assert.Equal(t, []int{run[0].Attempts, run[1].Attempts, run[2].Attempts}, []int{2, 1, 1})
}

// R11: priority is refused in an ordered queue, and the order changes only while no key is in use.
func r11Refuses(t *testing.T, h *harness) {
	h.ordered()
	assert.ErrorIs(t, h.try(storage.Record{ID: "a", Key: "k", Priority: 1})[0].Err, storage.ErrInvalid)
	h.enqueue(storage.Record{ID: "b", Key: "k"})
	_, err := h.engine.Edit(h.ctx(), h.now, h.queue, "b", storage.Edit{Priority: new(3)})
	assert.ErrorIs(t, err, storage.ErrInvalid)
	_, err = h.engine.Configure(h.ctx(), h.queue, storage.ConfigEdit{Ordered: new(false)})
	assert.ErrorIs(t, err, storage.ErrConflict)
	_, err = h.engine.Configure(h.ctx(), h.queue, storage.ConfigEdit{KeyLimit: new(2)})
	assert.ErrorIs(t, err, storage.ErrInvalid)
	h.must(h.settle(h.claimOne(time.Minute), storage.Ack, 0, ""))
	c, err := h.engine.Configure(h.ctx(), h.queue, storage.ConfigEdit{Ordered: new(false), KeyLimit: new(2)})
	assert.NoError(t, err)
	assert.Equal(t, c, storage.QueueConfig{KeyLimit: 2})
}

// R11 R18: who does not ask for a run gets none, also where records are held back until there are
// enough: its handlers would run side by side.
func r11HeldBackIsNoRun(t *testing.T, h *harness) {
	h.ordered()
	h.batches(2, time.Minute)
	h.enqueue(keyed("k", 3)...)
	assert.Equal(t, ids(h.claim(10, time.Minute).Records), []string{"k0"})
	h.claimNone()
}
