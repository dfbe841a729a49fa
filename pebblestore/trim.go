// SPDX-License-Identifier: Apache-2.0

package pebblestore

import (
	"math"

	"github.com/cockroachdb/pebble/v2"

	"github.com/bidemq/bide/storage"
)

// trim removes finished records beyond the limits. R19
func (c *call) trim() error {
	cfg := &c.config
	err := c.trimWhile(kindDone, &c.done, storage.Done, func(finished int64) bool {
		return !cfg.Retains() ||
			cfg.RetainFor > 0 && finished+millis(cfg.RetainFor) <= c.now ||
			cfg.RetainCount > 0 && c.count[storage.Done] > int64(cfg.RetainCount) ||
			cfg.RetainBytes > 0 && c.retained > cfg.RetainBytes
	})
	if err != nil || cfg.DeadFor == 0 && cfg.DeadCount == 0 {
		return err
	}
	return c.trimWhile(kindDead, &c.dead, storage.Dead, func(finished int64) bool {
		return cfg.DeadFor > 0 && finished+millis(cfg.DeadFor) <= c.now ||
			cfg.DeadCount > 0 && c.count[storage.Dead] > int64(cfg.DeadCount)
	})
}

// trimWhile removes the records of a state that finished first, while they are too many or too old.
func (c *call) trimWhile(kind byte, b *bound, s storage.State, over func(finished int64) bool) error {
	for n := 0; n < storage.Sweep && c.count[s] > 0; n++ {
		if err := c.head(b, prefix(kind, c.name)); err != nil {
			return err
		}
		if b.empty || !over(b.low.at) {
			return nil
		}
		p := b.low
		r, _, err := c.load("", p.seq, false)
		if err != nil {
			return err
		}
		if r == nil || r.state != s || r.at() != p { // a place without a record
			c.mark()
			c.t.del(placeKey(kind, c.name, p))
			b.remove(p)
			continue
		}
		c.total.Trimmed++
		c.forget(r)
	}
	return nil
}

// forget removes a finished record.
func (c *call) forget(r *record) {
	c.mark()
	c.t.touch(c.queue, r.id)
	c.tally(r, r.state, -1)
	if r.state == storage.Done {
		c.t.del(placeKey(kindDone, c.name, r.at()))
		c.done.remove(r.at())
	} else {
		c.t.del(placeKey(kindDead, c.name, r.at()))
		c.dead.remove(r.at())
		if r.untold {
			c.t.del(placeKey(kindUntold, c.name, r.at()))
		}
	}
	c.t.del(finishedKey(c.name, r.id, r.seq))
	c.t.del(seqKey(kindRecord, c.name, r.seq))
	c.t.del(seqKey(kindState, c.name, r.seq))
}

// idleMoves is how many keys that were joined meanwhile a call moves in the order of idleness.
const idleMoves = 10 * storage.Sweep

// sweepIdle expires waiting records of keys that nothing has joined for too long. Where a key stands
// in the order of idleness is brought up to date only when it is met there. R13
func (c *call) sweepIdle() error {
	idle := millis(c.config.KeyIdle)
	if idle == 0 || c.keys == 0 || c.idle+idle > c.now {
		return nil
	}
	left := storage.Sweep
	for moves := 0; left > 0 && moves < idleMoves; moves++ {
		c.flush()
		since, key, found, err := c.mostIdle()
		if err != nil {
			return err
		}
		c.idle = since
		if !found || since+idle > c.now {
			return nil
		}
		g, err := c.alive(key)
		if err != nil {
			return err
		}
		if g == nil || g.idle != since { // a place without a key
			c.mark()
			c.t.del(idleKey(c.name, key, since))
			continue
		}
		if g.joined > since {
			c.loosen(g)
			g.idle = g.joined
			continue
		}
		if left, err = c.expireMembers(g, left); err != nil {
			return err
		}
	}
	return nil
}

// mostIdle returns the first key in the order of idleness.
func (c *call) mostIdle() (since int64, key string, found bool, err error) {
	since = math.MaxInt64 / 2
	all := prefix(kindIdle, c.name)
	err = c.t.scanGrouped(appendNumber(all, c.idle), after(prefix(kindIdle, c.name)), func(it *pebble.Iterator) (bool, error) {
		since, key, err = parseNumbered(it.Key()[len(all):])
		found = err == nil
		return false, err
	})
	return since, key, found, err
}

// expireMembers expires the records of an idle key and returns how many more may be.
func (c *call) expireMembers(g *keyGroup, left int) (int, error) {
	for left > 0 && c.isIdle(g) {
		found, err := c.headOf(g)
		if err != nil {
			return left, err
		}
		if !found { // fewer than were counted
			c.loosen(g)
			g.idle = 0
			return left, nil
		}
		r, err := c.waitingAt(g.head.seq)
		if err != nil {
			return left, err
		}
		left--
		if r == nil || r.key != g.key {
			c.dropMember(g)
			continue
		}
		if err := c.expire(r); err != nil {
			return left, err
		}
	}
	return left, nil
}
