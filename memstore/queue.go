// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"cmp"
	"time"

	"github.com/tidwall/btree"

	"github.com/bidemq/bide/storage"
)

// record is a stored record with its successor.
type record struct {
	storage.Record
	successor *record // nil unless live
}

// order is a set of records sorted by an instant, then by arrival.
type order struct {
	*btree.BTreeG[*record]
}

func newOrder(at func(*record) time.Time) order {
	return order{btree.NewBTreeGOptions(func(a, b *record) bool {
		return cmp.Or(at(a).Compare(at(b)), cmp.Compare(a.Seq, b.Seq)) < 0
	}, btree.Options{NoLocks: true})}
}

// window is a dedup window.
type window struct {
	id  string
	end time.Time
}

// queue is the state of one queue. Every record stands in live or finished and in exactly one of
// waiting, leased, dead and done. Waiting records with an expiry stand in expiring too, those without
// a key in keyless, and waiting and leased ones with a key in their group.
type queue struct {
	name   string
	config storage.QueueConfig
	total  storage.Counters

	seq   int64     // of the latest record
	token int64     // of the latest claim
	clock time.Time // latest answer of the engine's own clock

	live     map[string]*record    // by id
	finished map[string][]*record  // by id, in order of sequence
	windows  map[string]time.Time  // ends of dedup windows by id; none for a live id
	ending   *btree.BTreeG[window] // the same windows by end

	keys     map[string]*group               // the groups
	names    groups                          // all of them, by name
	sizes    groups                          // all of them, largest first
	heads    groups                          // those with waiting records, oldest head first
	idle     groups                          // the same, by when a record has joined last
	turns    [storage.MaxPriority + 1]groups // those that are claimable at some time, by the priority of their heads
	keyless  [storage.MaxPriority + 1]order  // waiting ones without a key, by due time
	waiting  [storage.MaxPriority + 1]order  // by due time
	leased   order                           // by end of lease
	dead     order                           // by instant of death
	done     order                           // by instant of the ack
	expiring order                           // waiting ones by expiry
	retained int64                           // bytes of bodies and headers of done

	made bool // the call under way made something claimable, now or later
}

func newQueue(name string) *queue {
	q := &queue{
		name:     name,
		live:     map[string]*record{},
		finished: map[string][]*record{},
		windows:  map[string]time.Time{},
		keys:     map[string]*group{},
		names:    newGroups(byName),
		sizes:    newGroups(largestFirst),
		heads:    newGroups(oldestHeadFirst),
		idle:     newGroups(byJoined),
		leased:   newOrder(func(r *record) time.Time { return r.Lease.Until }),
		dead:     newOrder(func(r *record) time.Time { return r.Finished }),
		done:     newOrder(func(r *record) time.Time { return r.Finished }),
		expiring: newOrder(func(r *record) time.Time { return r.Expires() }),
		ending: btree.NewBTreeGOptions(func(a, b window) bool {
			return cmp.Or(a.end.Compare(b.end), cmp.Compare(a.id, b.id)) < 0
		}, btree.Options{NoLocks: true}),
	}
	for i := range q.waiting {
		q.waiting[i] = newOrder(func(r *record) time.Time { return r.Due })
		q.keyless[i] = newOrder(func(r *record) time.Time { return r.Due })
		q.turns[i] = newGroups(turns)
	}
	return q
}

// instant returns the now of a call in whole milliseconds. R2
func (q *queue) instant(now time.Time, clock func() time.Time) time.Time {
	if !now.IsZero() {
		return floor(now)
	}
	t := floor(clock())
	if t.Before(q.clock) {
		if q.clock.Sub(t) <= storage.MaxClockStep {
			return q.clock
		}
		q.total.ClockSteps++
		for _, g := range q.keys { // whose turns would come when the clock is there again
			g.served = earlier(g.served, t)
			q.place(g)
		}
	}
	q.clock = t
	return t
}

func floor(t time.Time) time.Time { return time.UnixMilli(t.UnixMilli()).UTC() }

// nextAt is when something of a scope becomes claimable by time alone; false if nothing will.
func (q *queue) nextAt(scope *storage.Scope) (time.Time, bool) {
	var at time.Time
	found := false
	note := func(t time.Time) {
		if !found || t.Before(at) {
			at, found = t, true
		}
	}
	if t, ok := q.keylessAt(); ok && scope.Has("") {
		note(t)
	}
	for p := range q.turns {
		if g := q.turn(scope, p); g != nil {
			note(g.stands.since)
		}
	}
	if head, ok := q.leased.Min(); ok {
		note(head.Lease.Until)
	}
	return at, found
}

// turn returns the group of a scope whose turn is first among those of a priority, nil if there is
// none.
func (q *queue) turn(scope *storage.Scope, priority int) (first *group) {
	q.turns[priority].Scan(func(g *group) bool {
		if scope.Has(g.key) {
			first = g
		}
		return first == nil
	})
	return first
}

// wait makes a record wait.
func (c *call) wait(r *record) {
	r.State, r.Lease = storage.Ready, storage.Lease{}
	c.waiting[r.Priority].Set(r)
	if r.ExpireIn > 0 {
		c.expiring.Set(r)
	}
	if r.Key == "" {
		c.made = true
		c.keyless[r.Priority].Set(r)
		return
	}
	g := c.group(r)
	g.waiting.Set(r)
	c.place(g)
}

// unplace takes a live record out of the orders it stands in.
func (q *queue) unplace(r *record) {
	g := q.keys[r.Key]
	if r.State == storage.Leased {
		q.leased.Delete(r)
		if g != nil {
			g.leased.Delete(r)
			q.place(g)
		}
		return
	}
	q.waiting[r.Priority].Delete(r)
	if r.ExpireIn > 0 {
		q.expiring.Delete(r)
	}
	if g == nil {
		q.keyless[r.Priority].Delete(r)
		return
	}
	g.waiting.Delete(r)
	q.place(g)
}

// hold begins a dedup window.
func (q *queue) hold(id string, end time.Time) {
	q.windows[id] = end
	q.ending.Set(window{id, end})
}

// free ends the dedup window of an id, if there is one.
func (q *queue) free(id string) {
	if end, ok := q.windows[id]; ok {
		q.ending.Delete(window{id, end})
		delete(q.windows, id)
	}
}
