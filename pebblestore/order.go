// SPDX-License-Identifier: Apache-2.0

package pebblestore

import (
	"container/heap"
	"slices"
)

// bound is what is remembered about the first of a set of places, so that nobody has to look for it
// among the remains of those before it.
type bound struct {
	low   place // no place of the set is before it
	exact bool  // low is the first place, or the set is empty
	empty bool  // only while exact
}

// add notes a place that joins the set.
func (b *bound) add(p place) {
	if b.exact && b.empty || p.less(b.low) {
		*b = bound{low: p, exact: true}
	}
}

// remove notes that a place leaves the set.
func (b *bound) remove(p place) {
	if b.exact && !b.empty && b.low == p {
		b.exact = false
	}
}

// first notes what was found: the first place, or that there is none.
func (b *bound) first(p place, found bool) {
	if !found {
		b.exact, b.empty = true, true
		return
	}
	*b = bound{low: p, exact: true}
}

// leases are the leased records of a queue by id, by key, and by the end of their leases.
type leases struct {
	byID  map[string]*record
	byKey map[string][]*record
	byEnd endings
}

func (l *leases) add(r *record) {
	l.byID[r.id] = r
	heap.Push(&l.byEnd, r)
	if r.key != "" {
		r.inKey = len(l.byKey[r.key])
		l.byKey[r.key] = append(l.byKey[r.key], r)
	}
}

func (l *leases) remove(r *record) {
	delete(l.byID, r.id)
	heap.Remove(&l.byEnd, r.heap)
	if r.key == "" {
		return
	}
	all := l.byKey[r.key]
	last := len(all) - 1
	all[r.inKey] = all[last]
	all[r.inKey].inKey = r.inKey
	all[last] = nil
	if l.byKey[r.key] = all[:last]; last == 0 {
		delete(l.byKey, r.key)
	}
}

// behind returns the leased records of a record's key that come after it, in order.
func (l *leases) behind(q *queue, r *record) []*record {
	var behind []*record
	for _, other := range l.byKey[r.key] {
		if q.ordered(r).less(q.ordered(other)) {
			behind = append(behind, other)
		}
	}
	slices.SortFunc(behind, func(a, b *record) int {
		if q.ordered(a).less(q.ordered(b)) {
			return -1
		}
		return 1
	})
	return behind
}

// moved notes that the end of a lease has changed.
func (l *leases) moved(r *record) { heap.Fix(&l.byEnd, r.heap) }

// first returns the record whose lease ends first, nil if none is leased.
func (l *leases) first() *record {
	if len(l.byEnd) == 0 {
		return nil
	}
	return l.byEnd[0]
}

// endings implements [heap.Interface].
type endings []*record

func (e *endings) Len() int           { return len(*e) }
func (e *endings) Less(i, j int) bool { return (*e)[i].at().less((*e)[j].at()) }

func (e *endings) Swap(i, j int) {
	a, b := (*e)[i], (*e)[j]
	(*e)[i], (*e)[j] = b, a
	a.heap, b.heap = j, i
}

// Push implements [heap.Interface].
func (e *endings) Push(r any) {
	rec, _ := r.(*record)
	rec.heap = len(*e)
	*e = append(*e, rec)
}

// Pop implements [heap.Interface].
func (e *endings) Pop() any {
	last := len(*e) - 1
	r := (*e)[last]
	(*e)[last] = nil
	*e = (*e)[:last]
	return r
}
