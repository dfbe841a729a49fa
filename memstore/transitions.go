// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/bidemq/bide/storage"
)

// sweep works off what time has done to the queue, in bounded steps.
func (c *call) sweep() {
	for range storage.Sweep {
		r, ok := c.leased.Min()
		if !ok || r.Lease.Until.After(c.now) {
			break
		}
		c.lapse(r)
	}
	c.expireIdle()
	for range storage.Sweep {
		r, ok := c.expiring.Min()
		if !ok || r.Expires().After(c.now) {
			break
		}
		c.expire(r)
	}
	for range storage.Sweep {
		w, ok := c.ending.Min()
		if !ok || w.end.After(c.now) {
			break
		}
		c.free(w.id)
	}
	c.trim()
}

// find returns the live record of an id after what time has done to it, nil if there is none.
func (c *call) find(id string) *record {
	for {
		r := c.live[id]
		switch {
		case r == nil:
			return nil
		case r.State == storage.Leased && !r.Lease.Until.After(c.now):
			c.lapse(r) // R6
		case r.State != storage.Leased && r.ExpireIn > 0 && !r.Expires().After(c.now):
			c.expire(r) // R13
		default:
			return r
		}
	}
}

// lapse ends the lease of a record that nobody settled. R6 R7
func (c *call) lapse(r *record) {
	c.total.Lapsed++
	c.unplace(r)
	c.note(r, r.Lease.Until, storage.ReasonLeaseEnded)
	c.again(r, r.Lease.Until, storage.ReasonLeaseEnded, r.Lease.Until)
}

// again makes an unplaced record, whose delivery ended at an instant, wait until it is due again;
// it is dead if no attempt or no delivery is left. R7
func (c *call) again(r *record, due time.Time, reason string, ended time.Time) {
	if reason != "" {
		r.Reason = reason
	}
	switch {
	case r.MaxAttempts > 0 && r.Attempts >= r.MaxAttempts:
		c.die(r, ended)
	case c.config.MaxDeliveries > 0 && r.Deliveries >= c.config.MaxDeliveries:
		r.Reason = storage.ReasonMaxDeliveries
		c.die(r, ended)
	default:
		r.Due = due
		c.wait(r)
		c.giveBack(r, ended)
	}
}

// note keeps an attempt that failed in the record's history.
func (c *call) note(r *record, ended time.Time, reason string) {
	r.History = storage.Note(r.History, storage.Attempt{
		Delivery: r.Deliveries, Ended: ended, By: r.Lease.By, Reason: reason,
	})
}

// die makes an unplaced record dead.
func (c *call) die(r *record, at time.Time) {
	c.total.Died++
	successor := c.finish(r)
	r.State, r.Finished, r.Lease = storage.Dead, at, storage.Lease{}
	r.Untold = c.config.TellDead
	c.dead.Set(r)
	c.finished[r.ID] = append(c.finished[r.ID], r)
	c.start(successor)
}

// expire drops a waiting record.
func (c *call) expire(r *record) {
	c.total.Expired++
	c.unplace(r)
	c.start(c.finish(r))
}

// finish ends the life of an unplaced record and returns its successor.
func (c *call) finish(r *record) *record {
	delete(c.live, r.ID)
	c.leave(r)
	successor := r.successor
	r.successor, r.Successor = nil, false
	return successor
}

// start makes a new record or a successor a record of the queue; nil is none.
func (c *call) start(r *record) {
	if r == nil {
		return
	}
	c.total.Enqueued++
	c.join(r)
}

// join makes a record live that was not.
func (c *call) join(r *record) {
	c.free(r.ID)
	c.live[r.ID] = r
	c.wait(r)
	if g := c.keys[r.Key]; g != nil {
		g.joined = c.now
		c.place(g)
	}
}

// drop removes a live record and its successor.
func (c *call) drop(r *record) {
	c.unplace(r)
	c.finish(r)
}

// enqueue stores one record. R1
func (c *call) enqueue(in *storage.Record, maxBody int) storage.EnqueueResult {
	refuse := func(err error) storage.EnqueueResult {
		return storage.EnqueueResult{Outcome: storage.Refused, Now: c.now, Err: err}
	}
	if err := in.Check(maxBody); err != nil {
		return refuse(err)
	}
	if c.config.Ordered && in.Priority > 0 { // R11
		return refuse(fmt.Errorf("%w: priority %d in an ordered queue", storage.ErrInvalid, in.Priority))
	}
	r := c.newRecord(in)
	if r.ExpireIn > 0 && !r.Expires().After(c.now) {
		return refuse(storage.ErrExpired)
	}
	old := c.find(r.ID)
	leased := old != nil && old.State == storage.Leased
	switch {
	case old == nil && in.OnLive == storage.Keep && c.windows[r.ID].After(c.now):
		c.total.Duplicates++
		return storage.EnqueueResult{Outcome: storage.Duplicate, Now: c.now}
	case old != nil && (in.OnLive == storage.Keep || in.OnLive == storage.Rerun && !leased):
		c.total.Duplicates++
		return storage.EnqueueResult{Outcome: storage.Duplicate, Seq: old.Seq, Due: old.Due, Now: c.now}
	}
	if !leased {
		if err := c.room(r, old); err != nil {
			return refuse(err)
		}
	}
	c.seq++
	r.Seq = c.seq
	result := storage.EnqueueResult{Outcome: storage.Stored, Seq: r.Seq, Due: r.Due, Now: c.now}
	switch {
	case leased:
		result.Outcome = storage.Reran
		c.total.Reruns++
		old.successor, old.Successor = r, true
		return result
	case old != nil:
		result.Outcome = storage.Replaced
		c.total.Replaced++
		c.drop(old)
	}
	result.Dropped = c.makeRoom(r)
	c.start(r)
	return result
}

// newRecord is what the producer says, resolved at the call's instant.
func (c *call) newRecord(in *storage.Record) *record {
	due := c.now.Add(storage.Millis(in.Delay))
	if !in.Due.IsZero() {
		due = time.UnixMilli(storage.DueMilli(in.Due)).UTC()
	}
	expireIn := in.ExpireIn
	if expireIn == 0 {
		expireIn = c.config.ExpireIn
	}
	return &record{Record: storage.Record{
		ID: in.ID, Key: in.Key, Priority: in.Priority,
		Body: bytes.Clone(in.Body), Headers: maps.Clone(in.Headers),
		Due: due, FirstDue: due, Enqueued: c.now,
		ExpireIn:    storage.Millis(expireIn),
		MaxAttempts: in.MaxAttempts,
		DedupFor:    storage.Millis(in.DedupFor),
	}}
}

// held returns the record of a receipt, nil if the lease is lost. R5
func (c *call) held(r storage.Receipt) *record {
	rec := c.live[r.ID]
	if rec == nil || rec.State != storage.Leased || rec.Lease.Token != r.Token || !rec.Lease.Until.After(c.now) {
		return nil
	}
	return rec
}

func (c *call) extend(receipt storage.Receipt, lease time.Duration) bool {
	r := c.held(receipt)
	if r == nil {
		return false
	}
	c.leased.Delete(r)
	r.Lease.Until = c.now.Add(storage.Millis(lease))
	c.leased.Set(r)
	return true
}

// settle ends a lease with a verdict. R5 R7
func (c *call) settle(s storage.Settlement) bool {
	r := c.held(s.Receipt)
	if r == nil {
		return false
	}
	c.unplace(r)
	reason := storage.CutReason(s.Reason)
	switch s.Verdict {
	case storage.Ack:
		c.total.Acked++
		successor := c.finish(r)
		c.retain(r)
		if r.DedupFor > 0 {
			c.hold(r.ID, c.now.Add(r.DedupFor))
		}
		c.start(successor)
	case storage.Retry:
		c.total.Retried++
		c.note(r, c.now, reason)
		c.again(r, c.now.Add(storage.Millis(s.Delay)), reason, c.now)
	case storage.Release, storage.Return:
		c.total.Released++
		if s.Verdict == storage.Return {
			r.Deliveries--
			reason = ""
		}
		r.Attempts-- // which leaves one, so that only deliveries can be spent
		due := r.Due
		if s.Delay > 0 {
			due = c.now.Add(storage.Millis(s.Delay))
		}
		c.again(r, due, reason, c.now)
	case storage.Bury:
		if reason != "" {
			r.Reason = reason
		}
		c.note(r, c.now, reason)
		c.die(r, c.now)
	case storage.Expire:
		c.total.Expired++
		c.start(c.finish(r))
	}
	return true
}

// view is a copy of the record for the caller.
func (r *record) view(now time.Time) storage.Record {
	v := r.Record
	v.Body, v.Headers, v.History = slices.Clone(r.Body), maps.Clone(r.Headers), slices.Clone(r.History)
	if v.State == storage.Ready && v.Due.After(now) {
		v.State = storage.Delayed
	}
	return v
}
