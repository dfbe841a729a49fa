// SPDX-License-Identifier: Apache-2.0

package pebblestore

// draft is a record that is not one of the queue yet.
type draft struct {
	*record
	payload []byte
}

// successor reads what the end of a live record takes: its successor, nil if it has none, and the
// keys of both.
func (c *call) successor(r *record) (*draft, error) {
	if err := c.know(r.key); err != nil || !r.successor {
		return nil, err
	}
	var d *draft
	_, err := c.t.get(c.queue, r.id, seqKey(kindSuccessor, c.name, r.seq), func(value []byte) error {
		next, payload, err := decodeRecord(value, 0)
		d = &draft{next, append([]byte(nil), payload...)}
		return err
	})
	if err == nil && d != nil {
		err = c.know(d.key)
	}
	if err != nil {
		return nil, err
	}
	return d, nil
}

// start makes a draft, whose key is known, a record of the queue; nil is none. No live record has its
// id.
func (c *call) start(d *draft) {
	if d == nil {
		return
	}
	c.mark()
	c.total.Enqueued++
	c.store(kindRecord, d.seq, d.record, d.payload)
	c.setID(d.id, d.seq)
	if d.key == "" {
		d.record.payload = d.payload
	}
	c.join(d.record)
}

// join makes a record wait that has just come into being.
func (c *call) join(r *record) {
	c.wait(r)
	if r.key != "" {
		c.groups[r.key].joined = c.now
	}
}

// drop removes a live record, whose key is known, and its successor.
func (c *call) drop(r *record) {
	c.mark()
	c.unplace(r)
	c.leave(r)
	c.erase(r)
}

// erase removes an unplaced live record and its successor.
func (c *call) erase(r *record) {
	c.t.del(seqKey(kindRecord, c.name, r.seq))
	c.delID(r.id)
	if r.stateful {
		c.t.del(seqKey(kindState, c.name, r.seq))
	}
	if r.successor {
		c.t.del(seqKey(kindSuccessor, c.name, r.seq))
	}
}

// finish removes a live record, for the count given, and starts its successor.
func (c *call) finish(r *record, count *int64) error {
	next, err := c.successor(r)
	if err != nil {
		return err
	}
	*count++
	c.drop(r)
	c.start(next)
	return nil
}
