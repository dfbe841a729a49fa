// SPDX-License-Identifier: Apache-2.0

package pebblestore

import (
	"errors"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/bidemq/bide/storage"
)

// Bounds on the work of one page.
const (
	pageLooks = 10_000  // records looked at for a filter by key
	pageBytes = 8 << 20 // of payloads
)

// match is a record that a filter selects.
type match struct {
	*record
	payload []byte
}

// matches are the records that a filter selects, in its order, as far as one page goes.
type matches struct {
	found []match
	more  bool
	last  storage.Position // of the last record looked at, zero if there was none
}

// matching returns a page of the records that a filter selects, with their payloads if asked for.
func (c *call) matching(f storage.Filter, full bool) (matches, error) {
	low, high := c.span(f)
	m := matches{}
	size := 0
	looks := 0
	err := c.walk(f, low, high, func(r *record) (bool, error) {
		if f.Key != "" && f.Key != r.key || f.ID != "" && f.ID != r.id || f.Untold && !r.untold {
			looks++
			if m.more = looks >= pageLooks; m.more {
				m.last = position(r)
			}
			return !m.more, nil
		}
		if m.more = len(m.found) == f.Limit || size > pageBytes; m.more {
			return false, nil
		}
		found := match{record: r}
		if full {
			whole, encoded, err := c.load(r.id, r.seq, true)
			if err != nil || whole == nil {
				return true, err
			}
			found.payload = encoded
			size += len(encoded)
		}
		m.found = append(m.found, found)
		m.last = position(r)
		return true, nil
	})
	return m, err
}

// span is the range of places that a filter allows, from low to below high.
func (c *call) span(f storage.Filter) (low, high place) {
	high = place{at: 1 << 62}
	raise := func(p place) {
		if low.less(p) {
			low = p
		}
	}
	lower := func(p place) {
		if p.less(high) {
			high = p
		}
	}
	switch f.State {
	case storage.Delayed:
		raise(place{at: c.now + 1})
	case storage.Ready:
		lower(place{at: c.now + 1})
	default:
	}
	if !f.From.IsZero() {
		raise(place{at: storage.DueMilli(f.From)})
	}
	if !f.To.IsZero() {
		lower(place{at: storage.DueMilli(f.To)})
	}
	if f.After != (storage.Position{}) {
		p := place{at: storage.DueMilli(f.After.At)}
		if f.After.At.Nanosecond()%int(time.Millisecond) == 0 {
			p.seq = max(f.After.Seq, 0)
			if !f.Desc {
				p = p.next()
			}
		}
		if f.Desc {
			lower(p)
		} else {
			raise(p)
		}
	}
	return low, high
}

// walk runs do on the records of the filter's state between two places, in the filter's order,
// until it says false.
func (c *call) walk(f storage.Filter, low, high place, do func(r *record) (bool, error)) error {
	if !low.less(high) {
		return nil
	}
	switch {
	case f.State == storage.Leased, f.ID != "":
		return c.walkFew(f, low, high, do)
	case f.Untold:
		return c.walkPlaces([]order{{prefix: prefix(kindUntold, c.name)}}, f.Desc, low, high, storage.Dead, do)
	case f.State == storage.Dead:
		return c.walkPlaces([]order{{prefix: prefix(kindDead, c.name)}}, f.Desc, low, high, storage.Dead, do)
	case f.State == storage.Done:
		return c.walkPlaces([]order{{prefix: prefix(kindDone, c.name)}}, f.Desc, low, high, storage.Done, do)
	case f.Key != "" && !c.config.Ordered: // where the order of the key is that of the listing
		return c.walkPlaces([]order{{prefix: memberPrefix(c.name, f.Key)}}, f.Desc, low, high, storage.Ready, do)
	}
	return c.walkPlaces(c.orders(), f.Desc, low, high, storage.Ready, do)
}

// orders are those of the waiting records.
func (c *call) orders() []order {
	var orders []order
	for p := range priorities {
		if b := &c.waiting[p]; !b.exact || !b.empty {
			orders = append(orders, order{waitingPrefix(c.name, p), b.low})
		}
		if b := &c.keyed[p]; !b.exact || !b.empty {
			orders = append(orders, order{keyedPrefix(c.name, p), b.low})
		}
	}
	return orders
}

// walkFew sorts the records of an id, or all leased ones.
func (c *call) walkFew(f storage.Filter, low, high place, do func(r *record) (bool, error)) error {
	few, err := c.few(f)
	if err != nil {
		return err
	}
	few = slices.DeleteFunc(few, func(r *record) bool { return r.at().less(low) || !r.at().less(high) })
	slices.SortFunc(few, func(a, b *record) int {
		if f.Desc {
			a, b = b, a
		}
		return compareAt(a, b)
	})
	for _, r := range few {
		if more, err := do(r); err != nil || !more {
			return err
		}
	}
	return nil
}

func (c *call) few(f storage.Filter) ([]*record, error) {
	switch {
	case f.State == storage.Leased:
		return slices.Clone(c.leases.byEnd), nil
	case f.State == storage.Dead || f.State == storage.Done:
		finished, err := c.finished(f.ID)
		return slices.DeleteFunc(finished, func(r *record) bool { return r.state != f.State }), err
	case c.leases.byID[f.ID] != nil:
		return nil, nil
	}
	r, err := c.waitingByID(f.ID)
	if r == nil || err != nil {
		return nil, err
	}
	return []*record{r}, nil
}

// order is a set of places on disk, which begins at a place.
type order struct {
	prefix []byte
	low    place
}

func (o order) key(p place) []byte {
	return appendPlace(slices.Clone(o.prefix), p)
}

// walkPlaces merges several orders.
func (c *call) walkPlaces(orders []order, desc bool, low, high place, state storage.State, do func(r *record) (bool, error)) (err error) {
	var its []*pebble.Iterator
	defer func() {
		for _, it := range its {
			err = errors.Join(err, it.Close())
		}
	}()
	for _, o := range orders {
		from := low
		if from.less(o.low) {
			from = o.low
		}
		if !from.less(high) {
			continue
		}
		it, err := c.t.iter(o.key(from), o.key(high))
		if err != nil {
			return err
		}
		its = append(its, it)
		if desc {
			it.Last()
		} else {
			it.First()
		}
	}
	for {
		it, p, err := foremost(its, desc)
		if it == nil || err != nil {
			return err
		}
		r, _, err := c.load("", p.seq, false)
		if err != nil {
			return err
		}
		if r != nil && r.state == state && r.at() == p {
			if more, err := do(r); err != nil || !more {
				return err
			}
		}
		if desc {
			it.Prev()
		} else {
			it.Next()
		}
	}
}

// foremost returns the iterator that stands on the foremost place, nil if all are at their end.
func foremost(its []*pebble.Iterator, desc bool) (best *pebble.Iterator, at place, err error) {
	for _, it := range its {
		if !it.Valid() {
			if err := it.Error(); err != nil {
				return nil, place{}, diskError(err)
			}
			continue
		}
		p, err := parsePlace(it.Key())
		if err != nil {
			return nil, place{}, err
		}
		if best == nil || p.less(at) != desc {
			best, at = it, p
		}
	}
	return best, at, nil
}
