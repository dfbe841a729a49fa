// SPDX-License-Identifier: Apache-2.0

package pebblestore

import (
	"github.com/tidwall/btree"

	"github.com/bidemq/bide/storage"
)

// knownGroups is how many keys of a queue are remembered from one transaction to the next.
const knownGroups = 1024

// keyGroup is a key that has a waiting or leased record. What the disk says of it changes at the end
// of a transaction only, so that a busy key is written once; until then it is among the dirty ones.
type keyGroup struct {
	key string
	groupState
	stored groupState // what the disk says
	onDisk bool       // it says anything
	ended  bool       // it has no record, or never had one
	dirty  bool

	low   place // no member is before it
	exact bool  // head is the first member, or there is none
	has   bool  // there is a head, only while exact
	nth   bound // the place that fills a batch, R18; only while MinBatch is above 1
	moved bool  // stands among the turns that changed
	loose bool  // its turn has to be found anew
}

// groupState is what is stored of a group.
type groupState struct {
	waiting int64
	served  int64 // when it was served last, or began
	number  int64 // token that it was served with last, or sequence that it began with
	joined  int64 // when a record joined it last
	idle    int64 // no later than joined, where it stands in the order of idleness; 0 is nowhere
	head    member
	headed  bool // head is known, and is the first member
	placed  bool
	turn    turn
}

// member is a waiting record in the order of its key.
type member struct {
	place    // R11
	due      int64
	priority int
	stateful bool
}

// turn is when a group is claimable, and its place among others. The sequence of the place is the
// group's number. R3
type turn struct {
	place
	priority int
}

// before is the order of turns of one priority.
func (g *keyGroup) before(o *keyGroup) bool {
	if g.turn.place != o.turn.place {
		return g.turn.less(o.turn.place)
	}
	return g.key < o.key
}

func newMoved() *btree.BTreeG[*keyGroup] {
	return btree.NewBTreeGOptions(func(a, b *keyGroup) bool {
		if a.turn.priority != b.turn.priority {
			return a.turn.priority > b.turn.priority
		}
		return a.before(b)
	}, btree.Options{NoLocks: true})
}

// ordered is the instant that places a record in its key. R3 R11
func (q *queue) ordered(r *record) place {
	if q.config.Ordered {
		return place{r.firstDue, r.seq}
	}
	return r.place()
}

// know reads the group of a key, so that transitions need not read it. A key without records is a
// group that has ended.
func (c *call) know(key string) error {
	if key == "" || c.groups[key] != nil {
		return nil
	}
	g := &keyGroup{key: key, ended: true, exact: true}
	_, err := c.t.getGrouped(idKey(kindKey, c.name, key), func(value []byte) (err error) {
		g.stored, err = decodeGroup(value)
		return err
	})
	if err != nil {
		return err
	}
	if g.stored != (groupState{}) {
		g.groupState, g.onDisk, g.ended = g.stored, true, false
		g.low, g.exact, g.has = g.head.place, g.headed || g.waiting == 0, g.headed
	}
	if c.groups == nil {
		c.groups, c.changedGroups = map[string]*keyGroup{}, map[string]*keyGroup{}
		c.moved = newMoved()
	}
	c.groups[key] = g
	return nil
}

// alive returns the group of a key, nil if it has no records.
func (c *call) alive(key string) (*keyGroup, error) {
	if key == "" {
		return nil, nil
	}
	if err := c.know(key); err != nil {
		return nil, err
	}
	if g := c.groups[key]; !g.ended {
		return g, nil
	}
	return nil, nil
}

// group returns the known group of a record, which begins with it if it has ended.
func (c *call) group(r *record) *keyGroup {
	g := c.groups[r.key]
	if g.ended {
		g = &keyGroup{
			key: r.key, stored: g.stored, onDisk: g.onDisk, exact: true,
			groupState: groupState{served: c.now, number: r.seq, joined: c.now},
		}
		c.groups[r.key] = g
		c.countKey(r.key, 1)
	}
	c.loosen(g)
	return g
}

// countKey counts a key in or out.
func (c *call) countKey(key string, by int64) {
	c.keys += by
	if c.audit != nil {
		c.audit.noteKey(key, by)
	}
}

// loosen notes that something about a group changes, on which its turn may depend.
func (c *call) loosen(g *keyGroup) {
	if g.moved {
		c.moved.Delete(g)
		g.moved = false
	}
	g.placed = false
	if !g.loose {
		g.loose = true
		c.loose = append(c.loose, g)
	}
	g.dirty = true
	c.changedGroups[g.key] = g
}

// leave ends the group of a record that has left it, if it was the last.
func (c *call) leave(r *record) {
	g := c.groups[r.key]
	if r.key == "" || g.ended || g.waiting > 0 || len(c.leases.byKey[r.key]) > 0 {
		return
	}
	c.loosen(g)
	g.ended = true
	c.countKey(r.key, -1)
}

// blocked says whether a group has as many leases as it may.
func (q *queue) blocked(g *keyGroup) bool {
	n := len(q.leases.byKey[g.key])
	if q.config.Ordered {
		return n > 0 // R11
	}
	return q.config.KeyLimit > 0 && n >= q.config.KeyLimit
}

// giveBack ends the leases of those behind a record that waits again in an ordered queue. R11
func (c *call) giveBack(r *record, ended int64) error {
	if !c.config.Ordered || r.key == "" {
		return nil
	}
	for _, other := range c.leases.behind(c.queue, r) {
		if other.state != storage.Leased { // the one before has given it back
			continue
		}
		other.attempts--
		err := c.again(other, outcome{due: other.due, at: ended, count: &c.total.Released})
		if err != nil {
			other.attempts++
			return err
		}
	}
	return nil
}

// setIdle sees to it that a group which waits stands in the order of idleness.
func (c *call) setIdle(g *keyGroup) {
	if g.idle == 0 && g.waiting > 0 {
		g.idle = max(g.joined, 1)
		c.idle = min(c.idle, g.idle)
	}
}

// isIdle says whether nothing has joined a group that waits for too long. R13
func (c *call) isIdle(g *keyGroup) bool {
	return !g.ended && g.waiting > 0 && g.joined+millis(c.config.KeyIdle) <= c.now
}
