// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"fmt"
	"slices"
	"time"

	"github.com/bidemq/bide/storage"
)

// room refuses a new record that the queue has no room for. What it replaces is as good as gone.
func (c *call) room(r, old *record) error {
	if c.config.Overflow == storage.DropOldest {
		return nil
	}
	inKey, inAll := c.crowd(r)
	if old != nil {
		inAll--
		if old.Key == r.Key {
			inKey--
		}
	}
	if most := c.config.MaxPerKey; most > 0 && r.Key != "" && inKey >= most {
		return fmt.Errorf("%w: key %q has %d waiting messages, the most that queue %q accepts for one", storage.ErrFull, r.Key, inKey, c.name)
	}
	if most := c.config.MaxLen; most > 0 && inAll >= most {
		return fmt.Errorf("%w: queue %q has %d waiting messages, the most that it accepts", storage.ErrFull, c.name, inAll)
	}
	return nil
}

// crowd counts the waiting records of a record's key and of the queue.
func (c *call) crowd(r *record) (inKey, inAll int) {
	if g := c.keys[r.Key]; g != nil {
		inKey = g.waiting.Len()
	}
	for _, w := range c.waiting {
		inAll += w.Len()
	}
	return inKey, inAll
}

// makeRoom drops the oldest waiting records, so that a new one fits. R12
func (c *call) makeRoom(r *record) (dropped []string) {
	if c.config.Overflow != storage.DropOldest {
		return nil
	}
	for len(dropped) < storage.Sweep {
		oldest := c.excess(r)
		if oldest == nil {
			break
		}
		dropped = append(dropped, oldest.ID)
		c.total.Dropped++
		c.drop(oldest)
	}
	return dropped
}

// excess returns the waiting record that has to go first for a new one to fit, nil if that fits.
func (c *call) excess(r *record) *record {
	inKey, inAll := c.crowd(r)
	if most := c.config.MaxPerKey; most > 0 && r.Key != "" && inKey >= most {
		head, _ := c.keys[r.Key].waiting.Min()
		return head
	}
	if most := c.config.MaxLen; most > 0 && inAll >= most {
		for _, w := range c.waiting {
			if head, ok := w.Min(); ok {
				return head
			}
		}
	}
	return nil
}

// retain keeps an acknowledged record, if the queue does. R19
func (c *call) retain(r *record) {
	if !c.config.Retains() {
		return
	}
	c.total.Retained++
	c.retained += int64(payloadSize(r))
	r.State, r.Finished, r.Lease = storage.Done, c.now, storage.Lease{}
	c.done.Set(r)
	c.finished[r.ID] = append(c.finished[r.ID], r)
}

// trim removes finished records beyond the limits. R19
func (c *call) trim() {
	for range storage.Sweep {
		r, ok := c.done.Min()
		if !ok || c.mayStay(r, c.config.RetainFor, c.config.RetainCount, c.done.Len()) && c.config.Retains() &&
			(c.config.RetainBytes == 0 || c.retained <= c.config.RetainBytes) {
			break
		}
		c.total.Trimmed++
		c.forget(r)
	}
	for range storage.Sweep {
		r, ok := c.dead.Min()
		if !ok || c.mayStay(r, c.config.DeadFor, c.config.DeadCount, c.dead.Len()) {
			break
		}
		c.total.Trimmed++
		c.forget(r)
	}
}

// mayStay says whether a finished record is within limits of age and number, where 0 is none.
func (c *call) mayStay(r *record, age time.Duration, most, n int) bool {
	return (age == 0 || r.Finished.Add(age).After(c.now)) && (most == 0 || n <= most)
}

// forget takes a finished record out of the queue.
func (c *call) forget(r *record) {
	if r.State == storage.Done {
		c.done.Delete(r)
		c.retained -= int64(payloadSize(r))
	} else {
		c.dead.Delete(r)
	}
	rest := slices.DeleteFunc(c.finished[r.ID], func(other *record) bool { return other == r })
	if len(rest) == 0 {
		delete(c.finished, r.ID)
	} else {
		c.finished[r.ID] = rest
	}
}
