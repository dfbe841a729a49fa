// SPDX-License-Identifier: Apache-2.0

package pebblestore

import (
	"math"

	"github.com/bidemq/bide/storage"
)

// voidPlaces is how many void places are left on disk before a range delete clears them.
const voidPlaces = 8192

// tally counts a record in or out of a state.
func (c *call) tally(r *record, s storage.State, by int64) {
	c.count[s] += by
	if c.audit != nil {
		c.audit.note(r.seq, s, by)
	}
}

// store writes a record as it is, with the payload as it was encoded, under its sequence.
func (c *call) store(kind byte, seq int64, r *record, payload []byte) {
	value := appendRecord(make([]byte, 0, 64+len(r.id)+len(r.key)+len(payload)), r)
	c.t.set(seqKey(kind, c.name, seq), append(value, payload...))
	c.t.touch(c.queue, r.id)
}

// remember writes what became of a record that is not leased.
func (c *call) remember(r *record) {
	c.t.set(seqKey(kindState, c.name, r.seq), encodeState(r))
	c.t.touch(c.queue, r.id)
	r.stateful = true
}

// wait makes an unplaced record waiting. It remembers whether that is sooner than anything else.
func (c *call) wait(r *record) {
	at, exact := c.nextAt()
	if !exact || r.due < at || r.due <= c.now {
		c.sooner = true
	}
	r.state = storage.Ready
	r.token, r.until, r.by = 0, 0, ""
	p := r.place()
	if p.less(c.waiting[r.priority].low) {
		c.clear(r.priority)
	}
	flag := byte(0)
	if r.stateful {
		flag = 1
	}
	c.t.set(waitingKey(c.name, r.priority, p), []byte{flag})
	c.waiting[r.priority].add(p)
	c.due.count(r.due, 1)
	c.tally(r, storage.Ready, 1)
	if r.expireIn > 0 {
		x := place{r.expires(), r.seq}
		c.t.set(placeKey(kindExpiry, c.name, x), nil)
		c.expiring.add(x)
	}
	c.t.touch(c.queue, r.id)
}

// clear removes the void places of a priority from the disk.
func (c *call) clear(priority int) {
	if c.void[priority] == 0 {
		return
	}
	c.void[priority] = 0
	c.t.delRange(waitingPrefix(c.name, priority), waitingKey(c.name, priority, c.waiting[priority].low))
}

// unplace takes a waiting or leased record out of the order it stands in.
func (c *call) unplace(r *record) {
	c.t.touch(c.queue, r.id)
	if r.state == storage.Leased {
		c.leases.remove(r)
		c.t.del(seqKey(kindLease, c.name, r.seq))
		c.tally(r, storage.Leased, -1)
		return
	}
	c.t.del(waitingKey(c.name, r.priority, r.place()))
	c.waiting[r.priority].remove(r.place())
	c.departed(r)
}

// pass takes the first waiting record of its priority out of the order by raising the bound.
func (c *call) pass(r *record) {
	c.t.touch(c.queue, r.id)
	c.skip(r.priority, r.place())
	c.departed(r)
}

// skip makes a place void, which is the first of its priority.
func (c *call) skip(priority int, p place) {
	c.waiting[priority] = bound{low: p.next()}
	c.void[priority] = min(c.void[priority]+1, math.MaxInt32)
	if c.void[priority] > voidPlaces {
		c.clear(priority)
	}
}

func (c *call) departed(r *record) {
	c.due.count(r.due, -1)
	c.tally(r, storage.Ready, -1)
	if r.expireIn > 0 {
		x := place{r.expires(), r.seq}
		c.t.del(placeKey(kindExpiry, c.name, x))
		c.expiring.remove(x)
	}
}

// lapse ends the lease of a record that nobody settled. R6 R7
func (c *call) lapse(r *record) error {
	return c.again(r, r.until, storage.ReasonLeaseEnded, r.until, &c.total.Lapsed)
}

// again ends a delivery at an instant, for the count given, and makes the record wait until it is
// due again; it is dead if no attempt or no delivery is left. R7
func (c *call) again(r *record, due int64, reason string, ended int64, count *int64) error {
	if reason == "" {
		reason = r.reason
	}
	spent := r.maxAttempts > 0 && r.attempts >= r.maxAttempts
	if !spent && c.config.MaxDeliveries > 0 && r.deliveries >= c.config.MaxDeliveries {
		spent, reason = true, storage.ReasonMaxDeliveries
	}
	if spent {
		return c.die(r, ended, reason, count)
	}
	c.mark()
	*count++
	c.unplace(r)
	r.reason, r.due, r.state = reason, due, storage.Ready
	c.remember(r)
	c.wait(r)
	return nil
}

// die makes a leased record dead and starts its successor.
func (c *call) die(r *record, at int64, reason string, count *int64) error {
	next, err := c.successor(r)
	if err != nil {
		return err
	}
	c.mark()
	*count++
	if count != &c.total.Died { // a bury has no count of its own
		c.total.Died++
	}
	c.unplace(r)
	if r.successor {
		c.t.del(seqKey(kindSuccessor, c.name, r.seq))
	}
	r.state, r.finished, r.reason, r.successor = storage.Dead, at, reason, false
	r.token, r.until, r.by = 0, 0, ""
	c.remember(r)
	c.t.del(idKey(kindID, c.name, r.id))
	c.t.set(placeKey(kindDead, c.name, r.at()), nil)
	c.t.set(finishedKey(c.name, r.id, r.seq), nil)
	c.tally(r, storage.Dead, 1)
	c.start(next)
	return nil
}

// expire drops a waiting or leased record and starts its successor.
func (c *call) expire(r *record) error { return c.finish(r, &c.total.Expired) }

// draft is a record that is not one of the queue yet.
type draft struct {
	*record
	payload []byte
}

// successor reads the successor of a live record, nil if it has none.
func (c *call) successor(r *record) (*draft, error) {
	if !r.successor {
		return nil, nil
	}
	var d *draft
	_, err := c.t.get(c.queue, r.id, seqKey(kindSuccessor, c.name, r.seq), func(value []byte) error {
		next, payload, err := decodeRecord(value)
		d = &draft{next, append([]byte(nil), payload...)}
		return err
	})
	if err != nil {
		return nil, err
	}
	return d, nil
}

// start makes a draft a record of the queue; nil is none. No live record has its id.
func (c *call) start(d *draft) {
	if d == nil {
		return
	}
	c.mark()
	c.total.Enqueued++
	c.store(kindRecord, d.seq, d.record, d.payload)
	c.t.set(idKey(kindID, c.name, d.id), appendNumber(nil, d.seq))
	c.wait(d.record)
}

// drop removes a live record and its successor.
func (c *call) drop(r *record) {
	c.mark()
	c.unplace(r)
	c.erase(r)
}

// erase removes an unplaced live record and its successor.
func (c *call) erase(r *record) {
	c.t.del(seqKey(kindRecord, c.name, r.seq))
	c.t.del(idKey(kindID, c.name, r.id))
	if r.stateful {
		c.t.del(seqKey(kindState, c.name, r.seq))
	}
	if r.successor {
		c.t.del(seqKey(kindSuccessor, c.name, r.seq))
	}
}

// finish removes a live record, for the count given, and starts its successor.
func (c *call) finish(r *record, count *int64) error {
	next, err := c.successor(r)
	if err != nil {
		return err
	}
	*count++
	c.drop(r)
	c.start(next)
	return nil
}

// hold begins the dedup window of an id.
func (c *call) hold(id string, end int64) {
	c.t.touch(c.queue, id)
	c.windows++
	c.t.set(idKey(kindWindow, c.name, id), appendNumber(nil, end))
	c.t.set(endingKey(c.name, id, end), nil)
	c.ending.add(place{at: end})
}

// window reads the end of the dedup window of an id, 0 if it has none.
func (c *call) window(id string) (end int64, err error) {
	if c.windows == 0 {
		return 0, nil
	}
	_, err = c.t.get(c.queue, id, idKey(kindWindow, c.name, id), func(value []byte) (err error) {
		end, err = number(value)
		return err
	})
	return end, err
}

// free ends a dedup window.
func (c *call) free(id string, end int64) {
	if end == 0 {
		return
	}
	c.mark()
	c.windows--
	c.t.touch(c.queue, id)
	c.t.del(idKey(kindWindow, c.name, id))
	c.t.del(endingKey(c.name, id, end))
	c.ending.remove(place{at: end})
}
