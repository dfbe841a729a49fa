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

// queue is the state of one queue. Every record stands in records and in exactly one of waiting,
// leased and dead; waiting records with an expiry stand in expiring too.
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

	waiting  [storage.MaxPriority + 1]order // by due time
	leased   order                          // by end of lease
	dead     order                          // by instant of death
	expiring order                          // waiting ones by expiry

	sooner bool // the call under way made something claimable earlier than it was
}

func newQueue(name string) *queue {
	q := &queue{
		name:     name,
		live:     map[string]*record{},
		finished: map[string][]*record{},
		windows:  map[string]time.Time{},
		leased:   newOrder(func(r *record) time.Time { return r.Lease.Until }),
		dead:     newOrder(func(r *record) time.Time { return r.Finished }),
		expiring: newOrder(func(r *record) time.Time { return r.Expires() }),
		ending: btree.NewBTreeGOptions(func(a, b window) bool {
			return cmp.Or(a.end.Compare(b.end), cmp.Compare(a.id, b.id)) < 0
		}, btree.Options{NoLocks: true}),
	}
	for i := range q.waiting {
		q.waiting[i] = newOrder(func(r *record) time.Time { return r.Due })
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
	}
	q.clock = t
	return t
}

func floor(t time.Time) time.Time { return time.UnixMilli(t.UnixMilli()).UTC() }

// nextAt is when something becomes claimable by time alone; false if nothing will.
func (q *queue) nextAt() (time.Time, bool) {
	var at time.Time
	found := false
	note := func(t time.Time) {
		if !found || t.Before(at) {
			at, found = t, true
		}
	}
	for _, w := range q.waiting {
		if head, ok := w.Min(); ok {
			note(head.Due)
		}
	}
	if head, ok := q.leased.Min(); ok {
		note(head.Lease.Until)
	}
	return at, found
}

// wait makes a record waiting. It remembers whether that is sooner than anything else.
func (q *queue) wait(r *record, now time.Time) {
	if at, ok := q.nextAt(); !ok || r.Due.Before(at) || !r.Due.After(now) {
		q.sooner = true
	}
	r.State, r.Lease = storage.Ready, storage.Lease{}
	q.waiting[r.Priority].Set(r)
	if r.ExpireIn > 0 {
		q.expiring.Set(r)
	}
}

// unplace takes a live record out of the order it stands in.
func (q *queue) unplace(r *record) {
	if r.State == storage.Leased {
		q.leased.Delete(r)
		return
	}
	q.waiting[r.Priority].Delete(r)
	if r.ExpireIn > 0 {
		q.expiring.Delete(r)
	}
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

// takeSooner says once whether somebody who waits should be told.
func (q *queue) takeSooner() bool {
	s := q.sooner && !q.config.Paused
	q.sooner = false
	return s
}
