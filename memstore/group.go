// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"cmp"
	"slices"
	"time"

	"github.com/tidwall/btree"

	"github.com/bidemq/bide/storage"
)

// group is a key that has a waiting or leased record. Unless it is blocked or has nothing waiting,
// it stands in the turns of its head's priority.
type group struct {
	key     string
	waiting order     // in the key's order
	leased  order     // in the key's order
	served  time.Time // when it was served last, or began
	number  int64     // token that it was served with last, or sequence that it began with
	joined  time.Time // when a record joined it last

	placed   bool
	priority int       // where it is placed
	since    time.Time // from when on it is claimable
	turn     int64     // number as of then
}

// turns are the keys whose heads have one priority, in the order of their turns. R3
type turns struct {
	*btree.BTreeG[*group]
}

func newTurns() turns {
	return turns{btree.NewBTreeGOptions(func(a, b *group) bool {
		return cmp.Or(a.since.Compare(b.since), cmp.Compare(a.turn, b.turn), cmp.Compare(a.key, b.key)) < 0
	}, btree.Options{NoLocks: true})}
}

// orderedAt is the instant that places a waiting or leased record in its key. R3 R11
func (q *queue) orderedAt(r *record) time.Time {
	if q.config.Ordered {
		return r.FirstDue
	}
	return r.Due
}

// group returns the group of a record, which begins with it if there is none.
func (c *call) group(r *record) *group {
	g := c.groups[r.Key]
	if g == nil {
		g = &group{
			key: r.Key, waiting: newOrder(c.orderedAt), leased: newOrder(c.orderedAt),
			served: c.now, number: r.Seq, joined: c.now,
		}
		c.groups[r.Key] = g
	}
	return g
}

// leave ends the group of a record that has left it, if it was the last.
func (c *call) leave(r *record) {
	if g := c.groups[r.Key]; g != nil && g.waiting.Len()+g.leased.Len() == 0 {
		delete(c.groups, r.Key)
	}
}

// place puts a group where its turn is, after something about it has changed.
func (q *queue) place(g *group) {
	if g.placed {
		q.turns[g.priority].Delete(g)
		g.placed = false
	}
	head, ok := g.waiting.Min()
	if !ok || q.blocked(g) {
		return
	}
	q.made = true
	g.placed, g.priority, g.turn = true, head.Priority, g.number
	g.since = later(q.heldUntil(g), g.served)
	q.turns[g.priority].Set(g)
}

// blocked says whether a group has as many leases as it may.
func (q *queue) blocked(g *group) bool {
	if q.config.Ordered {
		return g.leased.Len() > 0 // R11
	}
	return q.config.KeyLimit > 0 && g.leased.Len() >= q.config.KeyLimit
}

// heldUntil is the instant from which on the head of a group is not held back. R18
func (q *queue) heldUntil(g *group) time.Time {
	head, _ := g.waiting.Min()
	if q.config.MinBatch <= 1 {
		return head.Due
	}
	lingered := head.Due.Add(q.config.Linger)
	if nth, ok := g.waiting.GetAt(q.config.MinBatch - 1); ok {
		return earlier(lingered, later(head.Due, q.orderedAt(nth)))
	}
	return lingered
}

// keylessAt is the instant from which on records without a key are claimable; false if there are
// none. R18
func (q *queue) keylessAt() (time.Time, bool) {
	most := max(1, q.config.MinBatch)
	var dues []time.Time
	for _, w := range q.keyless {
		n := 0
		w.Scan(func(r *record) bool {
			dues = append(dues, r.Due)
			n++
			return n < most
		})
	}
	if len(dues) == 0 {
		return time.Time{}, false
	}
	slices.SortFunc(dues, time.Time.Compare)
	lingered := dues[0].Add(q.config.Linger)
	if len(dues) >= most {
		return earlier(lingered, dues[most-1]), true
	}
	return lingered, true
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// giveBack ends the leases of those behind a record that waits again in an ordered queue. R11
func (c *call) giveBack(r *record, ended time.Time) {
	if !c.config.Ordered || r.Key == "" {
		return
	}
	var behind []*record
	c.groups[r.Key].leased.Ascend(r, func(other *record) bool {
		behind = append(behind, other)
		return true
	})
	for _, other := range behind {
		if other.State != storage.Leased {
			continue
		}
		c.unplace(other)
		c.total.Released++
		other.Attempts--
		c.again(other, other.Due, "", ended)
	}
}

// expireIdle expires waiting records of keys that nobody has joined for too long. R13
func (c *call) expireIdle() {
	if c.config.KeyIdle == 0 {
		return
	}
	isIdle := func(g *group) bool {
		return g.waiting.Len() > 0 && !g.joined.Add(c.config.KeyIdle).After(c.now)
	}
	var idle []*group
	for _, g := range c.groups {
		if isIdle(g) {
			idle = append(idle, g)
		}
	}
	slices.SortFunc(idle, func(a, b *group) int {
		return cmp.Or(a.joined.Compare(b.joined), cmp.Compare(a.key, b.key))
	})
	left := storage.Sweep
	for _, g := range idle {
		for ; left > 0 && isIdle(g); left-- { // a successor may have joined meanwhile
			head, _ := g.waiting.Min()
			c.expire(head)
		}
	}
}
