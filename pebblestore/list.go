// SPDX-License-Identifier: Apache-2.0

package pebblestore

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/bidemq/bide/storage"
)

// List implements [storage.Admin].
func (s *Store) List(ctx context.Context, now time.Time, queue string, f storage.Filter) (storage.Page, error) {
	if err := f.Check(storage.Delayed, storage.Ready, storage.Leased, storage.Dead, storage.Done); err != nil {
		return storage.Page{}, wrap("list", queue, err)
	}
	var page storage.Page
	err := s.on(ctx, "list", queue, now, func(c *call) error {
		m, err := c.matching(f, true)
		if err != nil {
			return err
		}
		page.More, page.Last = m.more, m.last
		for _, r := range m.found {
			p, _, err := decodePayload(r.payload)
			if err != nil {
				return c.damaged(r.seq, err)
			}
			page.Records = append(page.Records, r.view(c.now, p))
		}
		return nil
	})
	if err != nil {
		return storage.Page{}, err
	}
	return page, nil
}

// Purge implements [storage.Admin].
func (s *Store) Purge(ctx context.Context, now time.Time, queue string, f storage.Filter) (storage.Batch, error) {
	if err := f.Check(storage.Delayed, storage.Ready, storage.Dead, storage.Done); err != nil {
		return storage.Batch{}, wrap("purge", queue, err)
	}
	var b storage.Batch
	err := s.on(ctx, "purge", queue, now, func(c *call) error {
		m, err := c.matching(f, false)
		if err != nil {
			return err
		}
		b.More, b.Last = m.more, m.last
		for _, r := range m.found {
			if err := c.know(r.key); err != nil {
				return err
			}
			b.Count++
			c.total.Purged++
			if r.state != storage.Ready {
				c.forget(r.record)
			} else {
				c.drop(r.record)
			}
		}
		return nil
	})
	if err != nil {
		return storage.Batch{}, err
	}
	return b, nil
}

// Redrive implements [storage.Admin].
func (s *Store) Redrive(ctx context.Context, now time.Time, queue string, f storage.Filter) (storage.Batch, error) {
	if err := f.Check(storage.Dead); err != nil {
		return storage.Batch{}, wrap("redrive", queue, err)
	}
	var b storage.Batch
	err := s.on(ctx, "redrive", queue, now, func(c *call) (err error) {
		if f.ID != "" {
			b, err = c.redriveID(f.ID)
		} else {
			b, err = c.redriveAll(f)
		}
		return err
	})
	if err != nil {
		return storage.Batch{}, err
	}
	return b, nil
}

func (c *call) redriveAll(f storage.Filter) (storage.Batch, error) {
	m, err := c.matching(f, true)
	if err != nil {
		return storage.Batch{}, err
	}
	b := storage.Batch{More: m.more, Last: m.last}
	for _, r := range m.found {
		live, err := c.find(r.id)
		if err != nil {
			return storage.Batch{}, err
		}
		if live != nil {
			b.Skipped++
			continue
		}
		b.Count++
		if err := c.redrive(draft(r)); err != nil {
			return storage.Batch{}, err
		}
	}
	return b, nil
}

// redriveID redrives the newest dead record of an id.
func (c *call) redriveID(id string) (storage.Batch, error) {
	live, err := c.find(id)
	if err != nil {
		return storage.Batch{}, err
	}
	if live != nil {
		return storage.Batch{}, fmt.Errorf("%q is live: %w", id, storage.ErrConflict)
	}
	finished, err := c.finished(id)
	if err != nil {
		return storage.Batch{}, err
	}
	finished = slices.DeleteFunc(finished, func(r *record) bool { return r.state != storage.Dead })
	if len(finished) == 0 {
		return storage.Batch{}, fmt.Errorf("%q is not among the dead: %w", id, storage.ErrNotFound)
	}
	r := finished[len(finished)-1]
	last := position(r)
	r, payload, err := c.load(r.id, r.seq, true)
	if err != nil {
		return storage.Batch{}, err
	}
	return storage.Batch{Count: 1, Last: last}, c.redrive(draft{r, payload})
}

// redrive makes a dead record without a live namesake ready.
func (c *call) redrive(d draft) error {
	window, err := c.window(d.id)
	if err := check(err, c.know(d.key)); err != nil {
		return err
	}
	c.total.Redriven++
	c.forget(d.record)
	c.free(d.id, window)
	c.seq++
	d.seq = c.seq
	d.due, d.firstDue, d.finished = c.now, c.now, 0
	d.attempts, d.deliveries, d.untold = 0, 0, false
	d.state, d.stateful = storage.Ready, false
	c.store(kindRecord, d.seq, d.record, d.payload)
	c.setID(d.id, d.seq)
	if d.reason != "" || len(d.history) > 0 {
		c.remember(d.record)
	}
	c.join(d.record)
	return nil
}
