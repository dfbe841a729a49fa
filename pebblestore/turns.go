// SPDX-License-Identifier: Apache-2.0

package pebblestore

import (
	"math"
	"slices"

	"github.com/cockroachdb/pebble/v2"
)

// settleTurns puts the groups about which something changed where their turns are.
func (c *call) settleTurns() error {
	for n := len(c.loose); n > 0; n = len(c.loose) {
		g := c.loose[n-1]
		if err := c.place(g); err != nil {
			return err
		}
		c.loose = c.loose[:n-1]
		g.loose = false
	}
	return nil
}

// place finds out when the turn of a group is, and whether that is sooner than anything else.
func (c *call) place(g *keyGroup) error {
	if g.ended {
		return nil
	}
	found, err := c.headOf(g)
	if err != nil || !found || c.blocked(g) {
		return err
	}
	held, err := c.heldUntil(g)
	if err != nil {
		return err
	}
	g.turn = turn{place{max(held, g.served), g.number}, g.head.priority}
	c.hurry(g.turn.at)
	g.placed, g.moved = true, true
	c.moved.Set(g)
	return nil
}

// hurry notes that something becomes claimable at an instant, if that is sooner than anything else.
func (c *call) hurry(at int64) {
	if c.sooner {
		return
	}
	next, exact := c.nextAt()
	c.sooner = !exact || c.parts || at < next || at <= c.now
}

// eachMoved runs do on the changed groups whose turns are of a priority, in order, until it says
// false.
func (q *queue) eachMoved(priority int, do func(g *keyGroup) bool) {
	if q.moved == nil || q.moved.Len() == 0 {
		return
	}
	q.moved.Ascend(&keyGroup{groupState: groupState{turn: turn{priority: priority}}}, func(g *keyGroup) bool {
		return g.turn.priority == priority && do(g)
	})
}

// heldUntil is the instant from which on the head of a group is not held back. R18
func (c *call) heldUntil(g *keyGroup) (int64, error) {
	if c.config.MinBatch <= 1 {
		return g.head.due, nil
	}
	lingered := g.head.due + millis(c.config.Linger)
	nth, enough, err := c.nthOf(g)
	if enough {
		lingered = min(lingered, max(g.head.due, nth.at))
	}
	return lingered, err
}

// keylessAt is the instant from which on records without a key are claimable, math.MaxInt64 if there
// are none. Where nothing is held back it may be too early, unless the bounds are exact. R18
func (c *call) keylessAt() (int64, error) {
	least := int64(math.MaxInt64)
	if c.config.MinBatch <= 1 {
		for p := range c.waiting {
			if b := &c.waiting[p]; !b.exact || !b.empty {
				least = min(least, b.low.at)
			}
		}
		return least, nil
	}
	var dues []int64
	for p := range c.waiting {
		b := &c.waiting[p]
		if b.exact && b.empty {
			continue
		}
		n := 0
		err := c.t.scan(waitingKey(c.name, p, b.low), after(waitingPrefix(c.name, p)), func(it *pebble.Iterator) (bool, error) {
			at, err := parsePlace(it.Key())
			if n++; n == 1 {
				b.first(at, err == nil)
			}
			dues = append(dues, at.at)
			return n < c.config.MinBatch, err
		})
		if err != nil {
			return 0, err
		}
		if n == 0 {
			b.first(place{}, false)
		}
	}
	if len(dues) == 0 {
		return least, nil
	}
	slices.Sort(dues)
	at := dues[0] + millis(c.config.Linger)
	if len(dues) >= c.config.MinBatch {
		at = min(at, dues[c.config.MinBatch-1])
	}
	return at, nil
}

// replaces is a pass over all keys that puts each where its turn is by the configuration and the
// clock of now.
type replaces struct {
	on   bool
	from string // the last key that was looked at
	cap  int64  // no key was served later
}

// replace begins a pass.
func (q *queue) replace(most int64) {
	if q.replacing.on {
		most = min(most, q.replacing.cap)
	}
	q.replacing = replaces{on: true, cap: most}
}

// stepPass replaces the next keys.
func (c *call) stepPass(n int) error {
	if !c.replacing.on {
		return nil
	}
	all := prefix(kindKey, c.name)
	start := all
	if c.replacing.from != "" {
		start = append(idKey(kindKey, c.name, c.replacing.from), 0)
	}
	var keys []string
	err := c.t.scanGrouped(start, after(all), func(it *pebble.Iterator) (bool, error) {
		keys = append(keys, string(it.Key()[len(all):]))
		return len(keys) < n, nil
	})
	if err != nil {
		return err
	}
	if c.replacing.from == "" { // those that are not on disk yet
		for _, g := range c.groups {
			c.refresh(g)
		}
	}
	for _, key := range keys {
		if err := c.know(key); err != nil {
			return err
		}
		c.refresh(c.groups[key])
		c.replacing.from = key
	}
	c.replacing.on = len(keys) == n
	c.mark()
	return c.settleTurns()
}

// refresh makes a group find its turn anew.
func (c *call) refresh(g *keyGroup) {
	if g.ended {
		return
	}
	g.nth.exact = false
	g.served = min(g.served, c.replacing.cap)
	c.loosen(g)
}
