// SPDX-License-Identifier: Apache-2.0

package pebblestore

import (
	"math"

	"github.com/bidemq/bide/storage"
)

// voidPlaces is how many void places are left on disk before a range delete clears them.
const voidPlaces = 8192

// fewVoid is how many are deleted one by one. Where records come in any order of due times each of them
// may have to clear the last few, and range deletes, which Pebble keeps in order in memory, would pile up.
const fewVoid = 64

// voids are the places below a bound that are still on disk.
type voids struct {
	count int     // about
	known []place // the first of them
}

func (v *voids) add(p place) {
	v.count = min(v.count+1, math.MaxInt32)
	if len(v.known) < fewVoid {
		v.known = append(v.known, p)
	}
}

// tally counts a record in or out of a state.
func (c *call) tally(r *record, s storage.State, by int64) {
	c.count[s] += by
	if s == storage.Done {
		c.retained += by * r.size
	}
	if c.audit != nil {
		c.audit.note(r, s, by)
	}
}

// store writes a record as it is, with the payload as it was encoded, under its sequence.
func (c *call) store(kind byte, seq int64, r *record, payload []byte) {
	value := appendRecord(make([]byte, 0, 64+len(r.id)+len(r.key)+len(payload)), r, seq)
	c.t.set(seqKey(kind, c.name, seq), append(value, payload...))
	c.t.touch(c.queue, r.id)
}

// remember writes what became of a record that is not leased.
func (c *call) remember(r *record) {
	c.t.set(seqKey(kindState, c.name, r.seq), encodeState(r))
	c.t.touch(c.queue, r.id)
	r.stateful = true
}

// wait makes an unplaced record, whose key is known, waiting. It remembers whether that is sooner
// than anything else.
func (c *call) wait(r *record) {
	r.state = storage.Ready
	r.token, r.until, r.by = 0, 0, ""
	if r.key == "" {
		c.waitAlone(r)
	} else {
		c.enter(c.group(r), r)
	}
	c.due.count(r.due, 1)
	c.tally(r, storage.Ready, 1)
	if r.expireIn > 0 {
		x := place{r.expires(), r.seq}
		c.t.set(placeKey(kindExpiry, c.name, x), nil)
		c.expiring.add(x)
	}
	c.t.touch(c.queue, r.id)
}

// waitAlone gives a record without a key its place.
func (c *call) waitAlone(r *record) {
	c.sooner = c.sooner || c.config.MinBatch > 1 // it may fill a batch
	c.hurry(r.due)
	p := r.place()
	if p.less(c.waiting[r.priority].low) {
		c.clear(r.priority)
	}
	var flag []byte
	if r.stateful {
		flag = []byte{1}
	}
	c.t.set(waitingKey(c.name, r.priority, p), flag)
	c.waiting[r.priority].add(p)
	c.look(r)
}

// enter gives a record with a key its places.
func (c *call) enter(g *keyGroup, r *record) {
	c.t.set(keyedKey(c.name, r.priority, r.place()), nil)
	c.keyed[r.priority].add(r.place())
	c.addMember(g, r)
}

// clear removes the void places of a priority from the disk.
func (c *call) clear(priority int) {
	v := &c.void[priority]
	if v.count > len(v.known) {
		c.t.delRange(waitingPrefix(c.name, priority), waitingKey(c.name, priority, c.waiting[priority].low))
	} else {
		for _, p := range v.known {
			c.t.del(waitingKey(c.name, priority, p))
		}
	}
	v.count, v.known = 0, v.known[:0]
}

// unplace takes a waiting or leased record, whose key is known, out of the order it stands in.
func (c *call) unplace(r *record) {
	c.t.touch(c.queue, r.id)
	if r.state == storage.Leased {
		c.leases.remove(r)
		c.ungrant(r)
		c.tally(r, storage.Leased, -1)
		if r.key != "" {
			c.group(r)
		}
		return
	}
	if r.key == "" {
		c.t.del(waitingKey(c.name, r.priority, r.place()))
		c.waiting[r.priority].remove(r.place())
		c.leaveAhead(r.priority, r.place())
	} else {
		c.t.del(keyedKey(c.name, r.priority, r.place()))
		c.keyed[r.priority].remove(r.place())
		c.removeMember(c.group(r), c.ordered(r))
	}
	c.departed(r)
}

// pass takes the first waiting record of its priority out of the order by raising the bound.
func (c *call) pass(r *record) {
	if r.key != "" {
		c.unplace(r)
		return
	}
	c.t.touch(c.queue, r.id)
	c.leaveAhead(r.priority, r.place())
	c.skip(r.priority, r.place())
	c.departed(r)
}

// skip makes a place void, which is the first of its priority.
func (c *call) skip(priority int, p place) {
	c.waiting[priority] = bound{low: p.next()}
	c.void[priority].add(p)
	if c.void[priority].count > voidPlaces {
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

// outcome says how a delivery ended and what is to become of the record.
type outcome struct {
	due    int64  // when it is due again
	reason string // "" keeps the one that the record has
	at     int64
	count  *int64 // of the counters
	failed bool   // the attempt is noted in the history
}

// lapse ends the lease of a record that nobody settled. R6 R7
func (c *call) lapse(r *record) error {
	return c.again(r, outcome{r.until, storage.ReasonLeaseEnded, r.until, &c.total.Lapsed, true})
}

// again ends a delivery and makes the record wait until it is due again; it is dead if no attempt or
// no delivery is left. R7
func (c *call) again(r *record, o outcome) error {
	spent := r.maxAttempts > 0 && r.attempts >= r.maxAttempts
	if !spent && c.config.MaxDeliveries > 0 && r.deliveries >= c.config.MaxDeliveries {
		return c.die(r, o, storage.ReasonMaxDeliveries)
	}
	if spent {
		return c.die(r, o, o.reason)
	}
	if err := c.know(r.key); err != nil {
		return err
	}
	c.mark()
	*o.count++
	c.note(r, &o)
	c.unplace(r)
	r.due, r.state = o.due, storage.Ready
	if o.reason != "" {
		r.reason = o.reason
	}
	c.remember(r)
	c.wait(r)
	return c.giveBack(r, o.at)
}

// note keeps an attempt that failed in the record's history.
func (c *call) note(r *record, o *outcome) {
	if o.failed {
		r.history = storage.Note(r.history, storage.Attempt{
			Delivery: r.deliveries, Ended: instant(o.at), By: r.by, Reason: o.reason,
		})
	}
}

// die makes a leased record dead for a reason, and starts its successor.
func (c *call) die(r *record, o outcome, reason string) error {
	next, err := c.successor(r)
	if err != nil {
		return err
	}
	c.mark()
	*o.count++
	if o.count != &c.total.Died { // a bury has no count of its own
		c.total.Died++
	}
	c.note(r, &o)
	c.unplace(r)
	if reason != "" {
		r.reason = reason
	}
	r.untold = c.config.TellDead
	c.conclude(r, storage.Dead, o.at)
	c.start(next)
	return nil
}

// conclude makes an unplaced record a finished one.
func (c *call) conclude(r *record, s storage.State, at int64) {
	if r.successor {
		c.t.del(seqKey(kindSuccessor, c.name, r.seq))
	}
	r.state, r.finished, r.successor = s, at, false
	r.token, r.until, r.by = 0, 0, ""
	c.leave(r)
	c.remember(r)
	c.delID(r.id)
	c.t.set(finishedKey(c.name, r.id, r.seq), nil)
	c.file(r)
	c.tally(r, s, 1)
}

// file gives a finished record its place.
func (c *call) file(r *record) {
	if r.state == storage.Done {
		c.t.set(placeKey(kindDone, c.name, r.at()), nil)
		c.done.add(r.at())
		return
	}
	c.t.set(placeKey(kindDead, c.name, r.at()), nil)
	c.dead.add(r.at())
	if r.untold {
		c.t.set(placeKey(kindUntold, c.name, r.at()), nil)
	}
}

// expire drops a waiting or leased record and starts its successor.
func (c *call) expire(r *record) error { return c.finish(r, &c.total.Expired) }
