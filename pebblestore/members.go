// SPDX-License-Identifier: Apache-2.0

package pebblestore

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/bidemq/bide/storage"
)

// encodeMember is the value of a member: what its group needs to know of it.
func encodeMember(m member) []byte {
	return appendNumber(append(appendBool(make([]byte, 0, 10), m.stateful), byte(m.priority)), m.due)
}

func decodeMember(p place, value []byte) (member, error) {
	m := member{place: p}
	if len(value) != 10 || value[1] > storage.MaxPriority {
		return m, fmt.Errorf("%w: member of %d bytes", storage.ErrFormat, len(value))
	}
	m.stateful, m.priority = value[0] == 1, int(value[1])
	var err error
	m.due, err = number(value)
	return m, err
}

// membersOf names a key among the ids that a transaction has touched.
func membersOf(key string) string { return "\x00" + key }

// addMember puts a waiting record into the order of its key.
func (c *call) addMember(g *keyGroup, r *record) {
	m := member{c.ordered(r), r.due, r.priority, r.stateful}
	c.t.set(memberKey(c.name, g.key, m.place), encodeMember(m))
	c.t.touch(c.queue, membersOf(g.key))
	g.waiting++
	if c.audit != nil {
		c.audit.noteMember(g.key, m.place, 1)
	}
	first := !g.exact && m.less(g.low) || g.exact && (!g.has || m.less(g.head.place))
	if g.exact && !g.has || m.less(g.low) {
		g.low = m.place
	}
	if first {
		g.head, g.exact, g.has = m, true, true
	}
	if g.nth.exact && (g.nth.empty || m.less(g.nth.low)) {
		g.nth.exact = false
	}
	c.setIdle(g)
}

// removeMember takes a waiting record out of the order of its key.
func (c *call) removeMember(g *keyGroup, p place) {
	c.t.del(memberKey(c.name, g.key, p))
	g.waiting = max(g.waiting-1, 0)
	if c.audit != nil {
		c.audit.noteMember(g.key, p, -1)
	}
	if g.exact && g.has && g.head.place == p {
		g.low, g.exact = p.next(), false // whoever begins there does not see it
	} else {
		c.t.touch(c.queue, membersOf(g.key))
	}
	if g.waiting == 0 {
		g.exact, g.has = true, false
	}
	if g.nth.exact && !g.nth.empty && !g.nth.low.less(p) {
		g.nth.exact = false
	}
}

// dropMember removes the head of a group, for which there is no record.
func (c *call) dropMember(g *keyGroup) {
	c.mark()
	waiting := g.waiting
	c.loosen(g)
	c.removeMember(g, g.head.place)
	g.waiting = waiting
	if g.waiting > 0 {
		g.exact = false
	}
}

// members runs do on the members of a group from a place on until it says false.
func (c *call) members(g *keyGroup, from place, do func(m member) (bool, error)) error {
	all := memberPrefix(c.name, g.key)
	if from == (place{}) { // before what left the key in this transaction
		c.t.touch(c.queue, membersOf(g.key))
	}
	return c.t.scanOf(c.queue, membersOf(g.key), appendPlace(all, from), after(memberPrefix(c.name, g.key)),
		func(it *pebble.Iterator) (bool, error) {
			p, err := parsePlace(it.Key())
			if err != nil {
				return false, err
			}
			m, err := decodeMember(p, it.Value())
			if err != nil {
				return false, err
			}
			return do(m)
		})
}

// headOf finds the first member of a group; false if it has none.
func (c *call) headOf(g *keyGroup) (bool, error) {
	if g.exact {
		return g.has, nil
	}
	found := false
	err := c.members(g, g.low, func(m member) (bool, error) {
		g.head, found = m, true
		return false, nil
	})
	if err != nil {
		return false, err
	}
	g.exact, g.has = true, found
	if found {
		g.low = g.head.place
	}
	return found, nil
}

// nthOf finds the place of the member that fills a batch; false if there are too few. R18
func (c *call) nthOf(g *keyGroup) (place, bool, error) {
	if g.nth.exact {
		return g.nth.low, !g.nth.empty, nil
	}
	n := 0
	var last place
	if g.waiting >= int64(c.config.MinBatch) {
		err := c.members(g, g.head.place, func(m member) (bool, error) {
			n++
			last = m.place
			return n < c.config.MinBatch, nil
		})
		if err != nil {
			return place{}, false, err
		}
	}
	g.nth.first(last, n == c.config.MinBatch)
	return last, !g.nth.empty, nil
}
