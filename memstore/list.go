// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/bidemq/bide/storage"
)

// List implements [storage.Admin].
func (s *Store) List(ctx context.Context, now time.Time, queue string, f storage.Filter) (storage.Page, error) {
	if err := f.Check(storage.Delayed, storage.Ready, storage.Leased, storage.Dead, storage.Done); err != nil {
		return storage.Page{}, err
	}
	c, err := s.begin(ctx, now, queue)
	if err != nil {
		return storage.Page{}, err
	}
	defer c.end()
	var page storage.Page
	found, more := c.matching(f)
	page.More = more
	for _, r := range found {
		page.Records = append(page.Records, r.view(c.now))
		page.Last = position(r)
	}
	return page, nil
}

// Purge implements [storage.Admin].
func (s *Store) Purge(ctx context.Context, now time.Time, queue string, f storage.Filter) (storage.Batch, error) {
	if err := f.Check(storage.Delayed, storage.Ready, storage.Dead, storage.Done); err != nil {
		return storage.Batch{}, err
	}
	c, err := s.begin(ctx, now, queue)
	if err != nil {
		return storage.Batch{}, err
	}
	defer c.end()
	var b storage.Batch
	found, more := c.matching(f)
	b.More = more
	for _, r := range found {
		b.Last = position(r)
		b.Count++
		c.total.Purged++
		if r.State == storage.Dead || r.State == storage.Done {
			c.forget(r)
		} else {
			c.drop(r)
		}
	}
	return b, nil
}

// Redrive implements [storage.Admin].
func (s *Store) Redrive(ctx context.Context, now time.Time, queue string, f storage.Filter) (storage.Batch, error) {
	if err := f.Check(storage.Dead); err != nil {
		return storage.Batch{}, err
	}
	c, err := s.begin(ctx, now, queue)
	if err != nil {
		return storage.Batch{}, err
	}
	defer c.end()
	if f.ID != "" {
		return c.redriveOne(f.ID)
	}
	var b storage.Batch
	found, more := c.matching(f)
	b.More = more
	for _, r := range found {
		b.Last = position(r)
		if c.find(r.ID) != nil {
			b.Skipped++
			continue
		}
		b.Count++
		c.redrive(r)
	}
	return b, nil
}

// redriveOne redrives the newest dead record of an id.
func (c *call) redriveOne(id string) (storage.Batch, error) {
	if c.find(id) != nil {
		return storage.Batch{}, fmt.Errorf("%w: %q in queue %q is live", storage.ErrConflict, id, c.name)
	}
	for _, r := range slices.Backward(c.finished[id]) {
		if r.State == storage.Dead {
			last := position(r)
			c.redrive(r)
			return storage.Batch{Count: 1, Last: last}, nil
		}
	}
	return storage.Batch{}, fmt.Errorf("%w: %q is not among the dead of queue %q", storage.ErrNotFound, id, c.name)
}

// redrive makes a dead record without a live namesake ready.
func (c *call) redrive(r *record) {
	c.total.Redriven++
	c.forget(r)
	c.seq++
	r.Seq = c.seq
	r.Due, r.FirstDue, r.Finished = c.now, c.now, time.Time{}
	r.Attempts, r.Deliveries, r.Untold = 0, 0, false
	c.join(r)
}

func position(r *record) storage.Position {
	return storage.Position{At: r.At(), Seq: r.Seq}
}

func compare(a, b storage.Position) int {
	return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Seq, b.Seq))
}

// matching returns the records that a filter selects, in its order, and whether there are more.
func (c *call) matching(f storage.Filter) (found []*record, more bool) {
	var orders []order
	switch f.State {
	case storage.Leased:
		orders = []order{c.leased}
	case storage.Dead:
		orders = []order{c.dead}
	case storage.Delayed, storage.Ready:
		orders = c.waiting[:]
	case storage.Done:
		orders = []order{c.done}
	}
	for _, o := range orders {
		for _, r := range o.Items() {
			if c.selects(f, r) {
				found = append(found, r)
			}
		}
	}
	slices.SortFunc(found, func(a, b *record) int {
		if f.Desc {
			a, b = b, a
		}
		return compare(position(a), position(b))
	})
	if len(found) > f.Limit {
		return found[:f.Limit], true
	}
	return found, false
}

func (c *call) selects(f storage.Filter, r *record) bool {
	at := r.At()
	switch {
	case f.State == storage.Delayed && !at.After(c.now), f.State == storage.Ready && at.After(c.now):
		return false
	case f.Untold && !r.Untold:
		return false
	case f.ID != "" && f.ID != r.ID, f.Key != "" && f.Key != r.Key:
		return false
	case !f.From.IsZero() && at.Before(f.From), !f.To.IsZero() && !at.Before(f.To):
		return false
	case f.After == (storage.Position{}):
		return true
	case f.Desc:
		return compare(position(r), f.After) < 0
	default:
		return compare(position(r), f.After) > 0
	}
}
