// SPDX-License-Identifier: Apache-2.0

package pebblestore

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/bidemq/bide/storage"
)

// queue returns a queue, which may not exist yet. What it reads does not grow with the number of
// records, but for the leased ones.
func (t *txn) queue(name string) (*queue, error) {
	if q := t.store.queues[name]; q != nil {
		return q, nil
	}
	q := newQueue(name)
	q.salt = t.touched.salt(name)
	value, closer, err := t.store.db.Get(prefix(kindQueue, name))
	switch {
	case err == nil:
		q.exists = true
		if err := errors.Join(q.decode(value), closer.Close()); err != nil {
			return nil, fmt.Errorf("queue %q: %w", name, err)
		}
	case !errors.Is(err, pebble.ErrNotFound):
		return nil, diskError(err)
	}
	known := q.exists
	if err := t.loadSeq(q); err != nil {
		return nil, err
	}
	if q.exists && !known {
		if err := t.countWindows(q); err != nil {
			return nil, err
		}
	}
	for p := range q.ahead {
		if !q.exists {
			q.ahead[p].end = endless
		}
	}
	if err := t.loadRecent(q); err != nil {
		return nil, err
	}
	if err := t.loadGrants(q); err != nil {
		return nil, err
	}
	if err := t.loadLeases(q); err != nil {
		return nil, err
	}
	if q.outdated {
		if err := t.upgrade(q); err != nil {
			return nil, err
		}
	}
	for i := range q.void {
		if q.waiting[i].low != (place{}) {
			q.void[i].count = math.MaxInt32
		}
	}
	if q.exists {
		t.store.queues[name] = q
	}
	return q, nil
}

// loadSeq takes the latest sequence from the records, if they know a later one: Q may be lost, and
// no sequence may be used twice.
func (t *txn) loadSeq(q *queue) error {
	for _, kind := range [...]byte{kindRecord, kindSuccessor} {
		all := prefix(kind, q.name)
		it, err := t.iter(all, after(all))
		if err != nil {
			return err
		}
		if it.Last() {
			n, err := number(it.Key())
			if kind == kindSuccessor && err == nil {
				var r *record
				if r, _, err = decodeRecord(it.Value(), 0); err == nil {
					n = r.seq
				}
			}
			if err != nil {
				return errors.Join(err, it.Close())
			}
			if n > q.seq || !q.exists {
				q.restore(n)
			}
		}
		if err := it.Close(); err != nil {
			return diskError(err)
		}
	}
	return nil
}

// restore makes a queue whose Q is lost usable. Repair does the rest.
func (q *queue) restore(seq int64) {
	q.exists = true
	q.seq = max(q.seq, seq)
	for i := range q.waiting {
		q.waiting[i], q.keyed[i], q.turns[i] = bound{}, bound{}, bound{}
	}
	q.expiring, q.ending, q.done, q.dead = bound{}, bound{}, bound{}, bound{}
	q.replace(math.MaxInt64)
}

// upgrade gives the records with a key their places among the keys, which the first format did not
// know. It is done once, for all of them.
func (t *txn) upgrade(q *queue) error {
	c := &call{queue: q, t: t, now: q.clock}
	var found []*record
	for p := range q.waiting {
		err := t.scan(waitingKey(q.name, p, q.waiting[p].low), after(waitingPrefix(q.name, p)), func(it *pebble.Iterator) (bool, error) {
			seq, err := number(it.Key())
			if err != nil {
				return false, err
			}
			r, _, err := c.load("", seq, false)
			if r != nil && r.key != "" && r.state == storage.Ready && r.priority == p {
				found = append(found, r)
			}
			return true, err
		})
		if err != nil {
			return err
		}
	}
	slices.SortFunc(found, func(a, b *record) int { return cmp.Compare(a.seq, b.seq) })
	for _, r := range found {
		if err := c.know(r.key); err != nil {
			return err
		}
		c.t.del(waitingKey(q.name, r.priority, r.place()))
		c.waiting[r.priority].remove(r.place())
		c.strayed = true
		c.enter(c.group(r), r)
	}
	for key, held := range q.leases.byKey {
		if err := c.know(key); err != nil {
			return err
		}
		c.group(held[0])
	}
	q.outdated = false
	t.change(q, true)
	return c.settleTurns()
}

func (t *txn) countWindows(q *queue) error {
	all := prefix(kindWindow, q.name)
	return t.scan(all, after(all), func(*pebble.Iterator) (bool, error) {
		q.windows++
		return true, nil
	})
}

// loadLeases reads the leases of the first two formats, which had a key for each, and makes a grant of
// them. It is done once, for all of them.
func (t *txn) loadLeases(q *queue) error {
	c := &call{queue: q, t: t}
	all := prefix(kindLease, q.name)
	err := t.scan(all, after(all), func(it *pebble.Iterator) (bool, error) {
		seq, err := number(it.Key())
		if err != nil {
			return false, err
		}
		r, err := t.leased(q, seq, func(r *record) error { return decodeState(it.Value(), r) })
		if err != nil {
			return false, err
		}
		if r != nil {
			q.leases.add(r)
			q.token = max(q.token, r.token)
			c.grantTo(r)
		}
		return true, nil
	})
	if err != nil || c.grant == nil {
		return err
	}
	t.delRange(all, after(all))
	c.writeGrant()
	t.change(q, true)
	return nil
}
