// SPDX-License-Identifier: Apache-2.0

package pebblestore

import (
	"bytes"
	"context"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/bidemq/bide/storage"
)

// call is one call on one queue, at one instant.
type call struct {
	*queue
	t   *txn
	now int64

	grant   *grant    // of what the call leases, nil so far
	granted []*record // and what it has leased
}

// on runs a function on a queue, after what time has done to it is worked off, and tells those who
// wait what it made claimable.
func (s *Store) on(ctx context.Context, op, queue string, now time.Time, run func(c *call) error) error {
	err := check(storage.CheckNow(now), storage.CheckQueue(queue))
	if err == nil {
		err = s.do(ctx, func(t *txn) error { return t.call(queue, now, run) })
	}
	return wrap(op, queue, err)
}

func (t *txn) call(queue string, now time.Time, run func(c *call) error) error {
	return t.still(queue, func(c *call) error {
		c.now = c.instant(now, t.store.clock)
		if err := c.sweep(); err != nil {
			return err
		}
		return run(c)
	})
}

// still runs a function on a queue without letting time pass.
func (t *txn) still(queue string, run func(c *call) error) error {
	q, err := t.queue(queue)
	if err != nil {
		return err
	}
	c := &call{queue: q, t: t}
	defer c.end()
	return run(c)
}

// end runs also after an error: a sweep before it may have done something.
func (c *call) end() {
	c.writeGrant()
	_ = c.settleTurns() // what cannot be read is met again by who needs it
	if c.takeSooner() {
		c.total.Wakeups += c.t.store.notices.send(c.name)
	}
	c.t.change(c.queue, false) // the clock may have moved
}

// keep makes the queue exist.
func (c *call) keep() {
	if !c.exists {
		c.exists = true
		c.t.store.queues[c.name] = c.queue
	}
}

// mark notes a change that somebody relies on.
func (c *call) mark() { c.t.change(c.queue, true) }

// sweep works off what time has done to the queue, in bounded steps.
func (c *call) sweep() error {
	for range storage.Sweep {
		r := c.leases.first()
		if r == nil || r.until > c.now {
			break
		}
		if err := c.lapse(r); err != nil {
			return err
		}
	}
	if err := c.sweepIdle(); err != nil {
		return err
	}
	if err := c.sweepExpiries(); err != nil {
		return err
	}
	if err := c.sweepWindows(); err != nil {
		return err
	}
	if err := c.trim(); err != nil {
		return err
	}
	return c.stepPass(storage.Sweep)
}

// head finds the first place of a set if it is not known.
func (c *call) head(b *bound, all []byte) error {
	if b.exact {
		return nil
	}
	it, err := c.t.iter(appendPlace(bytes.Clone(all), b.low), after(all))
	if err != nil {
		return err
	}
	defer func() { _ = it.Close() }()
	found := it.First()
	if err := it.Error(); err != nil {
		return diskError(err)
	}
	var p place
	if found {
		if p, err = parsePlace(it.Key()); err != nil {
			return err
		}
	}
	b.first(p, found)
	return nil
}

func (c *call) sweepExpiries() error {
	for budget := storage.Sweep; budget > 0; {
		all := prefix(kindExpiry, c.name)
		if err := c.head(&c.expiring, all); err != nil {
			return err
		}
		if c.expiring.empty || c.expiring.low.at > c.now {
			return nil
		}
		var due []place
		err := c.t.scan(placeKey(kindExpiry, c.name, c.expiring.low), placeKey(kindExpiry, c.name, place{c.now + 1, 0}),
			func(it *pebble.Iterator) (bool, error) {
				p, err := parsePlace(it.Key())
				due = append(due, p)
				return len(due) < budget, err
			})
		if err != nil {
			return err
		}
		for _, p := range due {
			budget--
			started, err := c.expireAt(p)
			if err != nil {
				return err
			}
			if started { // a successor may be before the rest
				break
			}
		}
	}
	return nil
}

// expireAt drops the waiting record of a place in the order of expiry, and says whether a successor
// started.
func (c *call) expireAt(p place) (started bool, err error) {
	r, _, err := c.load("", p.seq, false)
	if err != nil {
		return false, err
	}
	if r == nil || r.state != storage.Ready || r.expires() != p.at { // a place without a record
		c.t.del(placeKey(kindExpiry, c.name, p))
		c.expiring.remove(p)
		return false, nil
	}
	started = r.successor
	return started, c.expire(r)
}

func (c *call) sweepWindows() error {
	if c.windows == 0 || c.ending.exact && (c.ending.empty || c.ending.low.at > c.now) {
		return nil
	}
	all := prefix(kindEnding, c.name)
	type window struct {
		id  string
		end int64
	}
	var over []window
	first, found := place{}, false
	err := c.t.scan(appendNumber(all, c.ending.low.at), after(all), func(it *pebble.Iterator) (bool, error) {
		end, id, err := parseEnding(it.Key()[len(all):])
		if err != nil || end > c.now || len(over) == storage.Sweep {
			first, found = place{at: end}, true
			return false, err
		}
		over = append(over, window{id, end})
		return true, nil
	})
	if err != nil {
		return err
	}
	for _, w := range over {
		c.free(w.id, w.end)
	}
	c.ending.first(first, found)
	return nil
}
