// SPDX-License-Identifier: Apache-2.0

package pebblestore

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/bidemq/bide/storage"
)

// grant is what one call leased or extended, which is one value on disk. A record of it that is not
// leased under it any more is gone, or has an S, or stands in a later grant; the value is removed
// with the last of the others.
type grant struct {
	number int64
	held   int // records that are leased under it
}

// grantTo puts the lease of a record, which is new or has changed, into the grant of the call.
func (c *call) grantTo(r *record) {
	if c.grant == nil {
		c.lastGrant++
		c.grant = &grant{number: c.lastGrant}
	}
	if r.grant == c.grant {
		return
	}
	c.ungrant(r)
	r.grant = c.grant
	c.grant.held++
	c.granted = append(c.granted, r)
	c.t.touch(c.queue, r.id)
}

// ungrant takes a record out of the grant that it is in, if any.
func (c *call) ungrant(r *record) {
	g := r.grant
	if g == nil {
		return
	}
	r.grant = nil
	if g.held--; g.held == 0 {
		delete(c.grants, g.number)
		if g != c.grant { // which is not written yet
			c.t.del(seqKey(kindGrant, c.name, g.number))
		}
	}
}

// writeGrant writes the grant of the call.
func (c *call) writeGrant() {
	g := c.grant
	if g == nil || g.held == 0 {
		return
	}
	rs := c.granted[:0]
	for _, r := range c.granted {
		if r.grant == g {
			rs = append(rs, r)
		}
	}
	c.grants[g.number] = g
	c.t.set(seqKey(kindGrant, c.name, g.number), appendGrant(nil, rs))
}

// appendGrant encodes leased records: what most have in common once, and all of a record that has
// more to tell than its first attempt.
func appendGrant(dst []byte, rs []*record) []byte {
	first := rs[0]
	dst = append(dst, valueFormat)
	dst = appendInt(dst, first.until)
	dst = appendString(dst, first.by)
	dst = appendInt(dst, first.token)
	dst = appendInt(dst, int64(len(rs)))
	for _, r := range rs {
		dst = appendInt(dst, r.seq)
		plain := r.until == first.until && r.by == first.by && r.token >= first.token && r.isFirst()
		dst = appendBool(dst, !plain)
		if plain {
			dst = appendInt(dst, r.token-first.token)
		} else {
			dst = appendString(dst, encodeState(r))
		}
	}
	return dst
}

// isFirst says whether a leased record is in its first attempt, so that it is due as it was enqueued.
func (r *record) isFirst() bool {
	return r.attempts == 1 && r.deliveries == 1 && r.reason == "" && len(r.history) == 0 && !r.successor
}

// decodeGrant runs use on the sequences in a grant, with a function that completes the record, which
// was decoded from R.
func decodeGrant(value []byte, use func(seq int64, lease func(r *record) error) error) error {
	d := read(value)
	until, by, token := d.int(), d.string(), d.int()
	for n := d.int(); n > 0 && d.err == nil; n-- {
		seq := d.int()
		var lease func(r *record) error
		if d.bool() {
			state := d.bytes()
			lease = func(r *record) error { return decodeState(state, r) }
		} else {
			own := token + d.int()
			lease = func(r *record) error {
				r.state, r.attempts, r.deliveries = storage.Leased, 1, 1
				r.token, r.until, r.by = own, until, by
				return nil
			}
		}
		if d.err == nil {
			if err := use(seq, lease); err != nil {
				return err
			}
		}
	}
	return d.end()
}

// loadGrants reads the leases. What is no lease any more is removed with the rest of its grant.
func (t *txn) loadGrants(q *queue) error {
	type lease struct {
		*grant
		complete func(r *record) error
	}
	found := map[int64]lease{}
	var all []*grant
	from := prefix(kindGrant, q.name)
	err := t.scan(from, after(from), func(it *pebble.Iterator) (bool, error) {
		number, err := number(it.Key())
		if err != nil {
			return false, err
		}
		g := &grant{number: number}
		all = append(all, g)
		q.lastGrant = number
		return true, decodeGrant(append([]byte(nil), it.Value()...), func(seq int64, complete func(r *record) error) error {
			found[seq] = lease{g, complete} // the later one, if there was one before
			return nil
		})
	})
	if err != nil {
		return err
	}
	for seq, l := range found {
		r, err := t.leased(q, seq, l.complete)
		if err != nil {
			return err
		}
		if r != nil {
			r.grant = l.grant
			l.held++
			q.leases.add(r)
			q.token = max(q.token, r.token)
		}
	}
	for _, g := range all {
		if g.held > 0 {
			q.grants[g.number] = g
			continue
		}
		t.del(seqKey(kindGrant, q.name, g.number))
	}
	return nil
}

// leased puts a leased record together, nil if it is gone or waits or has ended since.
func (t *txn) leased(q *queue, seq int64, complete func(r *record) error) (*record, error) {
	ended, err := t.get(q, "", seqKey(kindState, q.name, seq), func([]byte) error { return nil })
	if ended || err != nil {
		return nil, err
	}
	var r *record
	_, err = t.get(q, "", seqKey(kindRecord, q.name, seq), func(value []byte) (err error) {
		var encoded []byte
		if r, encoded, err = decodeRecord(value, seq); err == nil {
			r.size, err = payloadSize(encoded)
		}
		return err
	})
	if r == nil || err != nil {
		return nil, err
	}
	if err := complete(r); err != nil {
		return nil, fmt.Errorf("lease of %q: %w", r.id, err)
	}
	if r.state != storage.Leased {
		return nil, fmt.Errorf("%w: lease of %q says %s", storage.ErrFormat, r.id, r.state)
	}
	return r, nil
}
