// SPDX-License-Identifier: Apache-2.0

package pebblestore

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/bidemq/bide/storage"
)

// load reads a record by its sequence, nil if there is none. Its id is "" if it is not known. Its
// payload is read if asked for, and belongs to the caller.
func (c *call) load(id string, seq int64, full bool) (*record, []byte, error) {
	var r *record
	var payload []byte
	_, err := c.t.get(c.queue, id, seqKey(kindRecord, c.name, seq), func(value []byte) (err error) {
		var p []byte
		if r, p, err = decodeRecord(value, seq); err == nil && full {
			payload = append([]byte(nil), p...)
		}
		return err
	})
	if r == nil || err != nil {
		return nil, nil, c.damaged(seq, err)
	}
	if held := c.leases.byID[r.id]; held != nil && held.seq == seq {
		return held, payload, nil
	}
	if err := c.loadState(r); err != nil {
		return nil, nil, c.damaged(seq, err)
	}
	return r, payload, nil
}

// loadState completes a record that is not leased.
func (c *call) loadState(r *record) error {
	found, err := c.t.get(c.queue, r.id, seqKey(kindState, c.name, r.seq), func(value []byte) error {
		return decodeState(value, r)
	})
	r.stateful = found
	return err
}

func (c *call) damaged(seq int64, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("record %d: %w", seq, err)
}

// find returns the live record of an id after what time has done to it, nil if there is none.
func (c *call) find(id string) (*record, error) {
	for {
		if r := c.leases.byID[id]; r != nil {
			if r.until > c.now {
				return r, nil
			}
			if err := c.lapse(r); err != nil { // R6
				return nil, err
			}
			continue
		}
		r, err := c.waitingByID(id)
		if r == nil || err != nil || !r.expired(c.now) {
			return r, err
		}
		if err := c.expire(r); err != nil { // R13
			return nil, err
		}
	}
}

// waitingByID returns the waiting record of an id, whatever time has done to it, nil if there is none.
func (c *call) waitingByID(id string) (*record, error) {
	if c.recent.lacks(id) {
		return nil, nil
	}
	var seq int64
	found, err := c.t.get(c.queue, id, idKey(kindID, c.name, id), func(value []byte) (err error) {
		seq, err = parseID(value)
		return err
	})
	if err != nil || !found {
		return nil, err
	}
	r, _, err := c.load(id, seq, false)
	if err != nil || r == nil || r.id != id || r.state != storage.Ready { // an id without a record
		return nil, err
	}
	return r, nil
}

// byID returns the record that an id means.
func (c *call) byID(id string) (*record, error) {
	r, err := c.find(id)
	if r != nil || err != nil {
		return r, err
	}
	finished, err := c.finished(id)
	if err != nil {
		return nil, err
	}
	if len(finished) == 0 {
		return nil, fmt.Errorf("%q: %w", id, storage.ErrNotFound)
	}
	return finished[len(finished)-1], nil
}

// finished returns the dead and done records of an id, in order of sequence.
func (c *call) finished(id string) ([]*record, error) {
	var seqs []int64
	all := finishedPrefix(c.name, id)
	err := c.t.scan(all, after(all), func(it *pebble.Iterator) (bool, error) {
		seq, err := number(it.Key())
		seqs = append(seqs, seq)
		return true, err
	})
	if err != nil {
		return nil, err
	}
	var found []*record
	for _, seq := range seqs {
		r, _, err := c.load(id, seq, false)
		if err != nil {
			return nil, err
		}
		if r != nil && (r.state == storage.Dead || r.state == storage.Done) {
			found = append(found, r)
		}
	}
	return found, nil
}
