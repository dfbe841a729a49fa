// SPDX-License-Identifier: Apache-2.0

package storagetest

import (
	"testing"
	"time"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/storage"
)

var leaseRules = []rule{
	{name: "R04OneLease", timed: true, test: r04OneLease},
	{name: "R05Lost", timed: true, test: r05Lost},
	{name: "R05Extend", timed: true, test: r05Extend},
	{name: "R05Outdated", test: r05Outdated},
	{name: "R05Tokens", test: r05Tokens},
	{name: "R05ManyQueues", test: r05ManyQueues},
	{name: "R05SettleOnce", test: r05SettleOnce},
	{name: "R06LeaseEnd", timed: true, test: r06LeaseEnd},
	{name: "R06ByID", timed: true, test: r06ByID},
	{name: "R06ManyLeases", test: r06ManyLeases},
	{name: "R09AttemptsAreRecorded", test: r09AttemptsAreRecorded},
}

// R4: a claimed record is invisible to Claim until its lease ends.
func r04OneLease(t *testing.T, h *harness) {
	h.enqueue(storage.Record{ID: "a"})
	c := h.claim(10, 2*unit)
	assert.Equal(t, len(c.Records), 1)
	r := c.Records[0]
	early := c.Now.Add(2 * unit).Sub(r.Lease.Until)
	assert.True(t, early == 0 || h.now.IsZero() && early > 0 && early < unit, early) // one shard may be asked before another
	assert.Equal(t, r.Lease.By, "tester")
	assert.Equal(t, r.State, storage.Leased)
	again := h.claim(10, time.Minute)
	if again.Now.Before(r.Lease.Until) {
		assert.Equal(t, len(again.Records), 0)
		assert.Equal(t, again.Next, r.Lease.Until.Sub(again.Now))
		h.until(r.Lease.Until)
		assert.Equal(t, h.claimOne(time.Minute).ID, "a")
	}
}

// R5: a lease is lost at its end, even if nobody has claimed the record again.
func r05Lost(t *testing.T, h *harness) {
	h.enqueue(storage.Record{ID: "a"})
	r := h.claimOne(unit)
	h.until(r.Lease.Until)
	assert.True(t, !h.extend(r, time.Minute), "extended a lease that had ended")
	for _, v := range []storage.Verdict{storage.Ack, storage.Retry, storage.Release, storage.Bury, storage.Expire, storage.Return} {
		assert.True(t, !h.settle(r, v, 0, "late"), "settled a lease that had ended with", v)
	}
	got := h.claimOne(time.Minute)
	assert.Equal(t, got.Attempts, 2)
	assert.Equal(t, got.Reason, storage.ReasonLeaseEnded)
}

// R5: Extend counts from now, and moves what Claim says is next.
func r05Extend(t *testing.T, h *harness) {
	h.enqueue(storage.Record{ID: "a"})
	r := h.claimOne(2 * unit)
	h.must(h.extend(r, time.Hour))
	until := h.get("a").Lease.Until
	assert.True(t, until.After(r.Lease.Until))
	h.until(r.Lease.Until)
	c := h.claimNone()
	assert.Equal(t, c.Next, until.Sub(c.Now))
	h.must(h.settle(r, storage.Ack, 0, "")) // the receipt of the claim stays good
	h.gone("a")
}

// R5: a receipt of an earlier claim changes nothing.
func r05Outdated(t *testing.T, h *harness) {
	h.enqueue(storage.Record{ID: "a", Body: []byte("x")})
	old := h.claimOne(time.Second)
	h.pass(time.Second)
	held := h.claimOne(time.Minute)
	assert.True(t, !h.extend(old, time.Hour))
	for _, v := range []storage.Verdict{storage.Ack, storage.Retry, storage.Release, storage.Bury, storage.Expire, storage.Return} {
		assert.True(t, !h.settle(old, v, 0, "stale"))
	}
	assert.Equal(t, h.get("a"), held)
	for _, made := range []storage.Receipt{
		{Queue: h.queue, ID: "a", Token: held.Lease.Token + 1},
		{Queue: h.queue, ID: "a"},
		{Queue: h.queue, ID: "b", Token: held.Lease.Token},
		{Queue: NewQueueName(), ID: "a", Token: held.Lease.Token},
	} {
		assert.True(t, !h.settleReceipt(storage.Settlement{Receipt: made, Verdict: storage.Ack}), made)
	}
	h.must(h.settle(held, storage.Ack, 0, ""))
}

// R5: tokens only grow, over claims, over namesakes, and when instants stand still or go back.
func r05Tokens(t *testing.T, h *harness) {
	last := int64(0)
	check := func(r storage.Record) {
		assert.True(t, r.Lease.Token > last, "token", r.Lease.Token, "after", last)
		assert.True(t, r.Lease.Token < 1<<53)
		last = r.Lease.Token
	}
	for range 3 {
		h.enqueue(storage.Record{ID: "a"}, storage.Record{ID: "b"})
		for _, r := range h.claim(2, time.Minute).Records {
			check(r)
			h.must(h.settle(r, storage.Retry, 0, ""))
		}
		for _, r := range h.claim(2, time.Minute).Records {
			check(r)
			h.must(h.settle(r, storage.Ack, 0, ""))
		}
	}
	assert.True(t, last >= h.now.UnixMicro(), "a token is at least the instant in microseconds")
	h.now = h.now.Add(-time.Hour)
	h.enqueue(storage.Record{ID: "a"})
	r := h.claimOne(time.Minute)
	check(r)
	h.must(h.settle(r, storage.Ack, 0, ""))
	h.now = h.now.Add(2 * time.Hour)
	h.enqueue(storage.Record{ID: "a"})
	r = h.claimOne(time.Minute)
	check(r)
	assert.Equal(t, r.Lease.Token, h.now.UnixMicro())
}

// R5: one call settles receipts of several queues, and reports the lost ones.
func r05ManyQueues(t *testing.T, h *harness) {
	var ss []storage.Settlement
	var rs []storage.Receipt
	var stale []storage.Receipt
	for range 3 {
		other := newHarness(t, h.engine, false)
		other.enqueue(storage.Record{ID: "a"}, storage.Record{ID: "b"})
		for _, r := range other.claim(2, time.Minute).Records {
			receipt := r.Receipt(other.queue)
			if r.ID == "b" {
				receipt.Token--
				stale = append(stale, receipt)
			}
			rs = append(rs, receipt)
			ss = append(ss, storage.Settlement{Receipt: receipt, Verdict: storage.Ack})
		}
	}
	lost, err := h.engine.Extend(h.ctx(), h.now, time.Hour, rs)
	assert.NoError(t, err)
	assert.Equal(t, lost, stale)
	lost, err = h.engine.Settle(h.ctx(), h.now, ss)
	assert.NoError(t, err)
	assert.Equal(t, lost, stale)
}

// R5: the second settlement of a receipt is lost, also within one call.
func r05SettleOnce(t *testing.T, h *harness) {
	h.enqueue(storage.Record{ID: "a"})
	r := h.claimOne(time.Minute)
	lost, err := h.engine.Settle(h.ctx(), h.now, []storage.Settlement{
		{Receipt: r.Receipt(h.queue), Verdict: storage.Retry},
		{Receipt: r.Receipt(h.queue), Verdict: storage.Ack},
	})
	assert.NoError(t, err)
	assert.Equal(t, lost, []storage.Receipt{r.Receipt(h.queue)})
	h.counts(0, 1, 0, 0)
	assert.True(t, !h.settle(r, storage.Ack, 0, ""))
	h.counts(0, 1, 0, 0)
}

// R6: a lease that has ended makes its record claimable, due at the end of the lease.
func r06LeaseEnd(t *testing.T, h *harness) {
	h.enqueue(storage.Record{ID: "a"})
	r := h.claimOne(unit)
	h.until(r.Lease.Until)
	got := h.claimOne(time.Minute)
	assert.Equal(t, got.ID, "a")
	assert.Equal(t, got.Due, r.Lease.Until)
	assert.Equal(t, got.FirstDue, r.FirstDue)
	assert.Equal(t, []int{got.Attempts, got.Deliveries}, []int{2, 2})
	assert.Equal(t, h.stats().Total.Lapsed, 1)
}

// R6: Get, Cancel, Edit, Enqueue and Stats treat it as ready from that instant.
func r06ByID(t *testing.T, h *harness) {
	h.enqueue(storage.Record{ID: "got"}, storage.Record{ID: "canceled"}, storage.Record{ID: "edited"},
		storage.Record{ID: "replaced"}, storage.Record{ID: "rerun"})
	// The records of a queue over several shards are leased one shard after the other.
	var until, last time.Time
	for _, r := range h.claim(10, unit).Records {
		if r.ID == "got" {
			until = r.Lease.Until
		}
		if r.Lease.Until.After(last) {
			last = r.Lease.Until
		}
	}
	h.until(last)
	h.counts(0, 5, 0, 0)
	got := h.get("got")
	assert.Equal(t, got.State, storage.Ready)
	assert.Equal(t, got.Due, until)
	assert.Equal(t, got.Lease, storage.Lease{})
	assert.Equal(t, got.Reason, storage.ReasonLeaseEnded)
	assert.NoError(t, h.engine.Cancel(h.ctx(), h.now, h.queue, "canceled", false))
	h.gone("canceled")
	edited, err := h.engine.Edit(h.ctx(), h.now, h.queue, "edited", storage.Edit{Delay: new(time.Hour)})
	assert.NoError(t, err)
	assert.Equal(t, edited.State, storage.Delayed)
	assert.Equal(t, h.try(storage.Record{ID: "replaced", OnLive: storage.Replace})[0].Outcome, storage.Replaced)
	assert.Equal(t, h.try(storage.Record{ID: "rerun", OnLive: storage.Rerun})[0].Outcome, storage.Duplicate)
}

// R6: more leases that ended at once than a call works off are all claimed in the end.
func r06ManyLeases(t *testing.T, h *harness) {
	const n = 5 * storage.Sweep / 2
	recs := make([]storage.Record, n)
	for i := range recs {
		recs[i] = storage.Record{ID: NewQueueName()}
	}
	h.enqueue(recs...)
	assert.Equal(t, len(h.claim(n, time.Second).Records), n)
	h.pass(time.Second)
	got := 0
	for range n {
		c := h.claim(storage.MaxBatch, time.Hour)
		got += len(c.Records)
		if c.Next > 0 {
			break
		}
	}
	assert.Equal(t, got, n)
	h.counts(0, 0, n, 0)
}

// R9: an attempt is recorded before the record is handed over.
func r09AttemptsAreRecorded(t *testing.T, h *harness) {
	h.enqueue(storage.Record{ID: "a"})
	for i := 1; i <= 3; i++ {
		r := h.claimOne(time.Minute)
		assert.Equal(t, r.Attempts, i)
		assert.Equal(t, h.get("a"), r)
		h.must(h.settle(r, storage.Retry, 0, ""))
	}
}
