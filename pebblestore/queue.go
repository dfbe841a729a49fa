// SPDX-License-Identifier: Apache-2.0

package pebblestore

import (
	"math"
	"time"

	"github.com/tidwall/btree"

	"github.com/bidemq/bide/storage"
)

const priorities = storage.MaxPriority + 1

// queue is what is kept in memory of one queue: its counts, its leases, and where its orders begin.
// Its size does not grow with the number of waiting or dead records.
type queue struct {
	name   string
	salt   uint64 // of its ids among the marks
	exists bool   // Q is on disk or will be with the group

	config storage.QueueConfig
	total  storage.Counters
	seq    int64 // of the latest record
	token  int64 // of the latest claim
	clock  int64 // latest answer of the engine's own clock

	count    [storage.Done + 1]int64 // records by state, all waiting ones under Ready
	windows  int64                   // dedup windows
	keys     int64                   // that have a waiting or leased record
	retained int64                   // bytes of the payloads of done records

	waiting   [priorities]bound // those without a key; places below are void, see void
	keyed     [priorities]bound // those with a key
	turns     [priorities]bound // of keys, as they are on disk
	expiring  bound
	done      bound
	dead      bound
	ending    bound // dedup windows; the place has no sequence
	leases    leases
	grants    map[int64]*grant // by number, those that have a lease
	lastGrant int64
	ahead     [priorities]ahead
	aheadSize int64 // bytes in memory of what is ahead
	strayed   bool  // a place was written in this transaction that ahead does not know
	recent    recent
	void      [priorities]voids
	due       tide

	groups        map[string]*keyGroup     // some of the keys, and some that are none
	changedGroups map[string]*keyGroup     // those that the disk does not know as they are
	moved         *btree.BTreeG[*keyGroup] // those of them that have a turn
	loose         []*keyGroup              // those whose turn is not known
	replacing     replaces
	idle          int64 // no key was joined last before, of those that have waiting records

	outdated bool // written by the first format

	parts   bool // somebody asked for a part of the queue
	sooner  bool // the call under way made something claimable earlier than it was
	changed bool // in txn.changed
	audit   *audit
}

func newQueue(name string) *queue {
	q := &queue{name: name, leases: leases{byID: map[string]*record{}, byKey: map[string][]*record{}}, grants: map[int64]*grant{}}
	for i := range q.waiting {
		for _, b := range [...]*bound{&q.waiting[i], &q.keyed[i], &q.turns[i]} {
			b.first(place{}, false)
		}
	}
	for _, b := range [...]*bound{&q.expiring, &q.ending, &q.done, &q.dead} {
		b.first(place{}, false)
	}
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
		q.replace(t)
	}
	q.clock = t
	return t
}

// nextAt is an instant before which nothing becomes claimable by time alone. It is the least such
// instant if exact, and math.MaxInt64 if nothing ever will.
func (q *queue) nextAt() (at int64, exact bool) {
	at, exact = math.MaxInt64, true
	note := func(b *bound) {
		exact = exact && b.exact
		if !b.exact || !b.empty {
			at = min(at, b.low.at)
		}
	}
	for i := range q.waiting {
		note(&q.waiting[i])
	}
	if q.keys > 0 {
		for i := range q.turns {
			note(&q.turns[i])
			q.eachMoved(i, func(g *keyGroup) bool {
				at = min(at, g.turn.at)
				return false
			})
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

// lateCounters are those that the first format did not have.
func (q *queue) lateCounters() []*int64 {
	t := &q.total
	return []*int64{&t.Dropped, &t.Retained, &t.Trimmed}
}
