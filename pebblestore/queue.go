// SPDX-License-Identifier: Apache-2.0

package pebblestore

import (
	"math"
	"time"

	"github.com/bidemq/bide/storage"
)

const priorities = storage.MaxPriority + 1

// queue is what is kept in memory of one queue: its counts, its leases, and where its orders begin.
// Its size does not grow with the number of waiting or dead records.
type queue struct {
	name   string
	exists bool // Q is on disk or will be with the group

	config storage.QueueConfig
	total  storage.Counters
	seq    int64 // of the latest record
	token  int64 // of the latest claim
	clock  int64 // latest answer of the engine's own clock

	count   [storage.Done + 1]int64 // records by state, all waiting ones under Ready
	windows int64                   // dedup windows

	waiting  [priorities]bound // places below are void, see void
	expiring bound
	ending   bound // dedup windows; the place has no sequence
	leases   leases
	void     [priorities]int // places below the bound that are still on disk, about
	due      tide

	sooner  bool // the call under way made something claimable earlier than it was
	changed bool // in txn.changed
	audit   *audit
}

func newQueue(name string) *queue {
	q := &queue{name: name, leases: leases{byID: map[string]*record{}}}
	for i := range q.waiting {
		q.waiting[i].first(place{}, false)
	}
	q.expiring.first(place{}, false)
	q.ending.first(place{}, false)
	return q
}

// tide tells ready records from delayed ones without counting them all: n is the number of waiting
// records that are due before an instant. Stats moves it from instant to instant.
type tide struct{ before, n int64 }

func (t *tide) count(due, by int64) {
	if due < t.before {
		t.n += by
	}
}

// instant returns the now of a call in whole milliseconds. R2
func (q *queue) instant(now time.Time, clock func() time.Time) int64 {
	if !now.IsZero() {
		return now.UnixMilli()
	}
	t := clock().UnixMilli()
	if t < q.clock {
		if q.clock-t <= storage.MaxClockStep.Milliseconds() {
			return q.clock
		}
		q.total.ClockSteps++
	}
	q.clock = t
	return t
}

// nextAt is an instant before which nothing becomes claimable by time alone. It is the least such
// instant if exact, and math.MaxInt64 if nothing ever will.
func (q *queue) nextAt() (at int64, exact bool) {
	at, exact = math.MaxInt64, true
	for i := range q.waiting {
		b := &q.waiting[i]
		exact = exact && b.exact
		if !b.exact || !b.empty {
			at = min(at, b.low.at)
		}
	}
	if r := q.leases.first(); r != nil {
		at = min(at, r.until)
	}
	return at, exact
}

// takeSooner says once whether somebody who waits should be told.
func (q *queue) takeSooner() bool {
	s := q.sooner && !q.config.Paused
	q.sooner = false
	return s
}

func (q *queue) counters() []*int64 {
	t := &q.total
	return []*int64{
		&t.Enqueued, &t.Duplicates, &t.Replaced, &t.Reruns, &t.Claimed, &t.Acked, &t.Retried, &t.Released,
		&t.Lapsed, &t.Died, &t.Redriven, &t.Expired, &t.Canceled, &t.Purged,
		&t.Wakeups, &t.EmptyClaims, &t.ClockSteps,
	}
}

// encode returns the value of Q.
func (q *queue) encode() []byte {
	b := append(make([]byte, 0, 256), valueFormat)
	b = appendBool(b, q.config.Paused)
	for _, n := range [...]int64{
		q.config.ExpireIn.Milliseconds(), int64(q.config.MaxDeliveries), q.seq, q.token, q.clock,
		q.count[storage.Ready], q.count[storage.Leased], q.count[storage.Dead], q.windows, q.due.before, q.due.n,
	} {
		b = appendInt(b, n)
	}
	for _, c := range q.counters() {
		b = appendInt(b, *c)
	}
	for i := range q.waiting {
		b = appendInt(b, q.waiting[i].low.at)
		b = appendInt(b, q.waiting[i].low.seq)
	}
	return b
}

// decode is the reverse of encode. It leaves out what is in other keys.
func (q *queue) decode(value []byte) error {
	d := read(value)
	q.config.Paused = d.bool()
	q.config.ExpireIn = time.Duration(d.int()) * time.Millisecond
	q.config.MaxDeliveries = d.small(storage.MaxAttempts)
	q.seq, q.token, q.clock = d.int(), d.int(), d.int()
	q.count[storage.Ready], q.count[storage.Leased], q.count[storage.Dead] = d.int(), d.int(), d.int()
	q.windows, q.due.before, q.due.n = d.int(), d.int(), d.int()
	for _, c := range q.counters() {
		*c = d.int()
	}
	for i := range q.waiting {
		q.waiting[i] = bound{low: place{d.int(), d.int()}}
	}
	q.expiring, q.ending = bound{}, bound{}
	return d.end()
}
