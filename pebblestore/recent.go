// SPDX-License-Identifier: Apache-2.0

package pebblestore

import (
	"maps"
	"slices"
)

// recentIDs bounds the ids that are remembered of a queue.
const recentIDs = 4096

// recent are the live ids of a queue from one on. Most ids grow with time, so that a new one is seen
// to be new without looking for it on the disk.
type recent struct {
	from  string // every live id that is not below it is among ids
	below bool   // there may be ids below
	ids   map[string]struct{}
}

// lacks says whether an id is certainly not live.
func (n *recent) lacks(id string) bool {
	if n.below && id < n.from {
		return false
	}
	_, ok := n.ids[id]
	return !ok
}

func (n *recent) add(id string) {
	if n.below && id < n.from {
		return
	}
	if n.ids == nil {
		n.ids = map[string]struct{}{}
	}
	n.ids[id] = struct{}{}
	if len(n.ids) > recentIDs {
		n.forget()
	}
}

// forget forgets the lower half of the ids, about.
func (n *recent) forget() {
	const sample = 64
	some := make([]string, 0, sample)
	for id := range n.ids {
		if some = append(some, id); len(some) == sample {
			break
		}
	}
	slices.Sort(some)
	n.from, n.below = some[len(some)/2], true
	maps.DeleteFunc(n.ids, func(id string, _ struct{}) bool { return id < n.from })
}

// setID leads an id to its live record.
func (c *call) setID(id string, seq int64) {
	c.t.set(idKey(kindID, c.name, id), appendInt(nil, seq))
	c.recent.add(id)
}

// delID frees an id.
func (c *call) delID(id string) {
	c.t.del(idKey(kindID, c.name, id))
	delete(c.recent.ids, id)
}

// parseID reads the value of an id. The first two formats had numbers of eight bytes.
func parseID(value []byte) (int64, error) {
	if len(value) == 8 {
		return number(value)
	}
	r := &reader{rest: value}
	seq := r.int()
	return seq, r.end()
}

// loadRecent finds out which ids are above all live ones.
func (t *txn) loadRecent(q *queue) error {
	all := prefix(kindID, q.name)
	it, err := t.iter(all, after(all))
	if err != nil {
		return err
	}
	if it.Last() {
		q.recent = recent{from: string(it.Key()[len(all):]) + "\x00", below: true}
	}
	if err := it.Error(); err != nil {
		_ = it.Close()
		return diskError(err)
	}
	return diskError(it.Close())
}
