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

	stands stand
}

// stand is where a group stands in the orders of groups. It changes only while it is in none.
type stand struct {
	placed   bool // in turns
	priority int  // of the head
	since    time.Time
	number   int64
	waiting  int
	head     time.Time // due time
	joined   time.Time
}

// groups are keys in some order, and by name among equals.
type groups struct {
	*btree.BTreeG[*group]
}

func newGroups(compare func(a, b stand) int) groups {
	return groups{btree.NewBTreeGOptions(func(a, b *group) bool {
		return cmp.Or(compare(a.stands, b.stands), cmp.Compare(a.key, b.key)) < 0
	}, btree.Options{NoLocks: true})}
}

// turns order keys whose heads have one priority. R3
func turns(a, b stand) int {
	return cmp.Or(a.since.Compare(b.since), cmp.Compare(a.number, b.number))
}

func byName(stand, stand) int        { return 0 }
func byJoined(a, b stand) int        { return a.joined.Compare(b.joined) }
func largestFirst(a, b stand) int    { return cmp.Compare(b.waiting, a.waiting) }
func oldestHeadFirst(a, b stand) int { return a.head.Compare(b.head) }

// orderedAt is the instant that places a waiting or leased record in its key. R3 R11
func (q *queue) orderedAt(r *record) time.Time {
	if q.config.Ordered {
		return r.FirstDue
	}
	return r.Due
}

// group returns the group of a record, which begins with it if there is none.
func (c *call) group(r *record) *group {
	g := c.keys[r.Key]
	if g == nil {
		g = &group{
			key: r.Key, waiting: newOrder(c.orderedAt), leased: newOrder(c.orderedAt),
			served: c.now, number: r.Seq, joined: c.now,
		}
		c.keys[r.Key] = g
		c.insert(g)
	}
	return g
}

// leave ends the group of a record that has left it, if it was the last.
func (c *call) leave(r *record) {
	if g := c.keys[r.Key]; g != nil && g.waiting.Len()+g.leased.Len() == 0 {
		c.remove(g)
		delete(c.keys, r.Key)
	}
}

// place puts a group where it belongs, after something about it has changed.
func (q *queue) place(g *group) {
	q.remove(g)
	g.stands = stand{number: g.number, waiting: g.waiting.Len(), joined: g.joined}
	if head, ok := g.waiting.Min(); ok {
		g.stands.placed, g.stands.priority, g.stands.head = !q.blocked(g), head.Priority, head.Due
		g.stands.since = later(q.heldUntil(g), g.served)
	}
	q.insert(g)
}

func (q *queue) insert(g *group) {
	q.names.Set(g)
	q.sizes.Set(g)
	if g.stands.waiting > 0 {
		q.heads.Set(g)
		q.idle.Set(g)
	}
	if g.stands.placed {
		q.made = true
		q.turns[g.stands.priority].Set(g)
	}
}

func (q *queue) remove(g *group) {
	q.names.Delete(g)
	q.sizes.Delete(g)
	q.heads.Delete(g)
	q.idle.Delete(g)
	if g.stands.placed {
		q.turns[g.stands.priority].Delete(g)
	}
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
	c.keys[r.Key].leased.Ascend(r, func(other *record) bool {
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
	for range storage.Sweep {
		g, ok := c.idle.Min()
		if !ok || g.joined.Add(c.config.KeyIdle).After(c.now) {
			return
		}
		head, _ := g.waiting.Min()
		c.expire(head)
	}
}
