// SPDX-License-Identifier: Apache-2.0

package pebblestore

import (
	"fmt"

	"github.com/bidemq/bide/storage"
)

// oldest returns the place of the first waiting record of a priority, with a key or without.
func (c *call) oldest(priority int) (p place, found bool, err error) {
	alone, keyed := &c.waiting[priority], &c.keyed[priority]
	if err := c.headAlone(priority); err != nil {
		return place{}, false, err
	}
	if err := c.head(keyed, keyedPrefix(c.name, priority)); err != nil {
		return place{}, false, err
	}
	switch {
	case alone.empty && keyed.empty:
		return place{}, false, nil
	case alone.empty || !keyed.empty && keyed.low.less(alone.low):
		return keyed.low, true, nil
	default:
		return alone.low, true, nil
	}
}

// crowd counts the waiting records of a known key.
func (c *call) crowd(key string) int64 {
	if key == "" || c.groups[key].ended {
		return 0
	}
	return c.groups[key].waiting
}

// room refuses a new record that the queue has no room for. What it replaces is as good as gone. R12
func (c *call) room(r, old *record) error {
	if c.config.Overflow == storage.DropOldest {
		return nil
	}
	inKey, inAll := c.crowd(r.key), c.count[storage.Ready]
	if old != nil {
		inAll--
		if old.key == r.key {
			inKey--
		}
	}
	if most := c.config.MaxPerKey; most > 0 && r.key != "" && inKey >= int64(most) {
		return fmt.Errorf("%w: key %q has %d waiting messages, the most that queue %q accepts for one", storage.ErrFull, r.key, inKey, c.name)
	}
	if most := c.config.MaxLen; most > 0 && inAll >= int64(most) {
		return fmt.Errorf("%w: queue %q has %d waiting messages, the most that it accepts", storage.ErrFull, c.name, inAll)
	}
	return nil
}

// makeRoom drops the oldest waiting records, so that a new one fits. R12
func (c *call) makeRoom(r *record) (dropped []string, err error) {
	if c.config.Overflow != storage.DropOldest {
		return nil, nil
	}
	for len(dropped) < storage.Sweep {
		oldest, err := c.excess(r)
		if err != nil || oldest == nil {
			return dropped, err
		}
		if err := c.know(oldest.key); err != nil {
			return dropped, err
		}
		dropped = append(dropped, oldest.id)
		c.total.Dropped++
		c.drop(oldest)
	}
	return dropped, nil
}

// excess returns the waiting record that has to go first for a new one to fit, nil if that fits.
func (c *call) excess(r *record) (*record, error) {
	if most := c.config.MaxPerKey; most > 0 && r.key != "" && c.crowd(r.key) >= int64(most) {
		g := c.groups[r.key]
		found, err := c.headOf(g)
		if err != nil || !found {
			return nil, err
		}
		return c.waitingAt(g.head.seq)
	}
	if most := c.config.MaxLen; most == 0 || c.count[storage.Ready] < int64(most) {
		return nil, nil
	}
	for p := range priorities {
		oldest, found, err := c.oldest(p)
		if err != nil {
			return nil, err
		}
		if found {
			return c.waitingAt(oldest.seq)
		}
	}
	return nil, nil
}

// waitingAt returns the waiting record of a sequence, nil if there is none.
func (c *call) waitingAt(seq int64) (*record, error) {
	r, _, err := c.load("", seq, false)
	if err != nil || r == nil || r.state != storage.Ready {
		return nil, err
	}
	return r, nil
}
