// SPDX-License-Identifier: Apache-2.0

package pebblestore

import (
	"bytes"
	"math"
)

// flush writes the groups that changed, and where they stand in the orders of keys.
func (c *call) flush() {
	if err := c.settleTurns(); err != nil { // an unreadable member must not hold up everything else
		for _, g := range c.loose {
			g.loose = false
		}
		c.loose = nil
		c.replace(math.MaxInt64)
	}
	for key, g := range c.changedGroups {
		c.write(g)
		if g.moved {
			c.moved.Delete(g)
		}
		g.dirty, g.moved = false, false
		delete(c.changedGroups, key)
	}
}

// forgetGroups bounds what is remembered.
func (q *queue) forgetGroups() {
	if len(q.groups) <= knownGroups {
		return
	}
	for key := range q.groups {
		if delete(q.groups, key); len(q.groups) <= knownGroups/2 {
			return
		}
	}
}

// write brings the disk up to what is known of a group.
func (c *call) write(g *keyGroup) {
	next := g.groupState
	next.headed = g.exact && g.has
	if !next.headed {
		next.head = member{place: g.low}
	}
	if !next.placed {
		next.turn = turn{}
	}
	if next.waiting == 0 {
		next.idle = 0
	}
	if g.ended {
		next = groupState{}
	}
	c.rewrite(c.turnOf(g.key, g.stored), c.turnOf(g.key, next))
	if g.stored.placed && g.stored.turn != next.turn {
		c.turns[g.stored.turn.priority].remove(g.stored.turn.place)
	}
	if next.placed {
		c.turns[next.turn.priority].add(next.turn.place)
	}
	c.rewrite(c.headsOf(g.key, g.stored), c.headsOf(g.key, next))
	c.rewrite(c.idleOf(g.key, g.stored), c.idleOf(g.key, next))
	var before, now []byte
	if g.onDisk {
		before = sizeKey(c.name, g.key, g.stored.waiting)
	}
	if !g.ended {
		now = sizeKey(c.name, g.key, next.waiting)
	}
	c.rewrite(before, now)
	switch own := idKey(kindKey, c.name, g.key); {
	case !g.ended:
		c.t.set(own, encodeGroup(next))
	case g.onDisk:
		c.t.del(own)
	}
	c.t.flushed = true
	g.idle = next.idle
	g.stored, g.onDisk = next, !g.ended
}

// rewrite replaces a key without a value by another one; nil is none.
func (c *call) rewrite(before, now []byte) {
	if bytes.Equal(before, now) {
		return
	}
	if before != nil {
		c.t.del(before)
	}
	if now != nil {
		c.t.set(now, nil)
	}
}

// Where a group stands in each order, nil if it does not.

func (c *call) turnOf(key string, s groupState) []byte {
	if !s.placed {
		return nil
	}
	return turnKey(c.name, key, s.turn)
}

func (c *call) headsOf(key string, s groupState) []byte {
	if !s.headed {
		return nil
	}
	return headKey(c.name, key, s.head.due)
}

func (c *call) idleOf(key string, s groupState) []byte {
	if s.idle == 0 {
		return nil
	}
	return idleKey(c.name, key, s.idle)
}

// encodeGroup returns the value of K.
func encodeGroup(s groupState) []byte {
	b := append(make([]byte, 0, 64), valueFormat)
	for _, n := range [...]int64{
		s.waiting, s.served, s.number, s.joined, s.idle, s.head.at, s.head.seq, s.head.due, int64(s.head.priority),
		s.turn.at, s.turn.seq, int64(s.turn.priority),
	} {
		b = appendInt(b, n)
	}
	b = appendBool(b, s.head.stateful)
	b = appendBool(b, s.headed)
	return appendBool(b, s.placed)
}

func decodeGroup(value []byte) (groupState, error) {
	d := read(value)
	s := groupState{
		waiting: d.int(), served: d.int(), number: d.int(), joined: d.int(), idle: d.int(),
		head: member{place: place{d.int(), d.int()}, due: d.int(), priority: d.small(priorities - 1)},
		turn: turn{place{d.int(), d.int()}, d.small(priorities - 1)},
	}
	s.head.stateful, s.headed, s.placed = d.bool(), d.bool(), d.bool()
	return s, d.end()
}
