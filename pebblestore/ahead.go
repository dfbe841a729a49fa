// SPDX-License-Identifier: Apache-2.0

package pebblestore

import (
	"bytes"
	"errors"
	"math"
	"sort"

	"github.com/cockroachdb/pebble/v2"

	"github.com/bidemq/bide/storage"
)

// Bounds on what is kept in memory of waiting records, per queue; per store only for what exceeds a
// small number of records in a queue.
const (
	aheadRecords  = 1024
	aheadFew      = 64
	aheadLater    = 16 // records read that are not due yet
	aheadBytes    = 1 << 20
	aheadPayload  = 16 << 10 // larger payloads are left on disk
	aheadOverhead = 400      // bytes of memory of a record beside its payload and id, about
	aheadInStore  = 64 << 20
)

// sight is how far claims look ahead.
type sight struct{ records, later int }

// ahead are the first waiting records without a key of a priority, in the order of their places, so
// that a claim need not look for them on the disk: all whose places are below its end.
type ahead struct {
	recs []*record
	end  place
}

// endless is the end of an ahead that has all there are.
var endless = place{math.MaxInt64, math.MaxInt64}

func (a *ahead) find(p place) (int, bool) {
	n := len(a.recs)
	if n == 0 || a.recs[n-1].place().less(p) { // as a rule
		return n, false
	}
	i := sort.Search(n, func(i int) bool { return !a.recs[i].place().less(p) })
	return i, i < n && a.recs[i].place() == p
}

// look adds a record that waits, if it is among the first.
func (c *call) look(r *record) {
	a := &c.ahead[r.priority]
	if !r.place().less(a.end) {
		c.strayed = true
		r.payload = nil
		return
	}
	i, found := a.find(r.place())
	if found {
		c.weigh(-a.recs[i].weight())
		a.recs[i] = r
	} else {
		a.recs = append(a.recs, nil)
		copy(a.recs[i+1:], a.recs[i:])
		a.recs[i] = r
	}
	if len(r.payload) > aheadPayload {
		r.payload = nil
	}
	c.weigh(r.weight())
	for c.overweight(len(a.recs)) {
		c.cut(r.priority, len(a.recs)/2)
	}
}

// leave takes a record out of those of a priority.
func (c *call) leaveAhead(priority int, p place) {
	a := &c.ahead[priority]
	if !p.less(a.end) {
		c.strayed = true
		return
	}
	i, found := a.find(p)
	if !found {
		return
	}
	c.weigh(-a.recs[i].weight())
	a.recs[i].payload = nil
	if i == 0 {
		a.recs[0] = nil
		a.recs = a.recs[1:]
		return
	}
	copy(a.recs[i:], a.recs[i+1:])
	a.recs[len(a.recs)-1] = nil
	a.recs = a.recs[:len(a.recs)-1]
}

// cut forgets all but the first n records of a priority.
func (c *call) cut(priority, n int) {
	a := &c.ahead[priority]
	c.strayed = c.strayed || n < len(a.recs) // they may have been written in this transaction
	for i := n; i < len(a.recs); i++ {
		c.weigh(-a.recs[i].weight())
		if i == n {
			a.end = a.recs[i].place()
		}
		a.recs[i].payload, a.recs[i] = nil, nil
	}
	a.recs = a.recs[:n]
}

// forgetAhead forgets all of it, because the disk may not be as it was thought to be.
func (c *call) forgetAhead() {
	for p := range c.ahead {
		c.cut(p, 0)
		c.ahead[p] = ahead{}
	}
}

func (c *call) weigh(by int64) {
	c.aheadSize += by
	c.t.store.ahead += by
}

func (r *record) weight() int64 { return aheadOverhead + int64(len(r.id)+len(r.key)+len(r.payload)) }

func (c *call) overweight(n int) bool {
	return n > c.t.store.sight.records || n > 1 && c.aheadSize > aheadBytes || n > aheadFew && c.t.store.ahead > aheadInStore
}

// upcoming returns the first waiting record without a key of a priority, nil if there is none.
func (c *call) upcoming(priority int) (*record, error) {
	a, b := &c.ahead[priority], &c.waiting[priority]
	if len(a.recs) == 0 && a.end != endless {
		if err := c.readAhead(priority); err != nil {
			return nil, err
		}
	}
	if len(a.recs) == 0 {
		b.first(place{}, false)
		return nil, nil
	}
	b.first(a.recs[0].place(), true)
	return a.recs[0], nil
}

// headAlone finds the first place of the records without a key of a priority, if it is not known.
func (c *call) headAlone(priority int) error {
	a, b := &c.ahead[priority], &c.waiting[priority]
	switch {
	case b.exact:
	case len(a.recs) > 0:
		b.first(a.recs[0].place(), true)
	case a.end == endless:
		b.first(place{}, false)
	default:
		return c.head(b, waitingPrefix(c.name, priority))
	}
	return nil
}

// readAhead reads the next records of a priority of which none is known: those that are due, and
// some that are not. What cannot be read is met again once it is the first.
func (c *call) readAhead(priority int) error {
	a, b := &c.ahead[priority], &c.waiting[priority]
	from := b.low
	if from.less(a.end) {
		from = a.end
	}
	all := waitingPrefix(c.name, priority)
	records := reading{call: c, written: c.strayed}
	later, full := 0, false
	err := c.t.scanFrom(c.strayed, waitingKey(c.name, priority, from), after(all), func(it *pebble.Iterator) (bool, error) {
		p, err := parsePlace(it.Key())
		if err != nil {
			return false, err
		}
		a.end = p
		if full = len(a.recs) > 0 && c.overweight(len(a.recs)+1) || later >= c.t.store.sight.later; full {
			return false, nil
		}
		r, encoded, err := records.waiting(p.seq, isStateful(it.Value()))
		switch {
		case err != nil:
			return false, c.damaged(p.seq, err)
		case r == nil || r.key != "" || r.priority != priority || r.place() != p: // a place without a record
			if len(a.recs) == 0 {
				c.mark()
				c.skip(priority, p)
			}
			return true, nil
		case p.at > c.now:
			later++
		}
		if len(encoded) <= aheadPayload {
			r.payload = encoded
		}
		a.recs = append(a.recs, r)
		c.weigh(r.weight())
		return true, nil
	})
	if err = errors.Join(err, records.close()); err != nil {
		if len(a.recs) > 0 {
			return nil
		}
		return err
	}
	if !full {
		a.end = endless
	}
	return nil
}

// reading reads records by sequence, best in ascending order.
type reading struct {
	*call
	written bool // records may have been written in this transaction
	it      *pebble.Iterator
	at      int64 // where it stands
}

// waiting reads a waiting record, nil if there is none, and its payload.
func (r *reading) waiting(seq int64, stateful bool) (*record, []byte, error) {
	if r.it == nil {
		from := prefix(kindRecord, r.name)
		var err error
		if r.it, err = r.t.iterFrom(r.written, from, after(from)); err != nil {
			return nil, nil, err
		}
	}
	var found bool
	if r.at > 0 && seq == r.at+1 && r.it.Valid() {
		found = r.it.Next()
	} else {
		found = r.it.SeekGE(seqKey(kindRecord, r.name, seq))
	}
	if !found {
		return nil, nil, diskError(r.it.Error())
	}
	var err error
	if r.at, err = number(r.it.Key()); err != nil || r.at != seq {
		return nil, nil, err
	}
	rec, encoded, err := decodeRecord(bytes.Clone(r.it.Value()), seq)
	if err != nil {
		return nil, nil, err
	}
	if held := r.leases.byID[rec.id]; held != nil && held.seq == seq {
		return nil, nil, nil
	}
	if stateful {
		err = r.loadState(rec)
	}
	if err != nil || rec.state != storage.Ready {
		return nil, nil, err
	}
	return rec, encoded, nil
}

func (r *reading) close() error {
	if r.it == nil {
		return nil
	}
	err := r.it.Close()
	r.it = nil
	return diskError(err)
}
