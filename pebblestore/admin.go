// SPDX-License-Identifier: Apache-2.0

package pebblestore

import (
	"context"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/bidemq/bide/storage"
)

// Queues implements [storage.Admin].
func (s *Store) Queues(ctx context.Context, from string, limit int) ([]string, error) {
	if err := storage.CheckLimit(limit); err != nil {
		return nil, wrap("queues", "", err)
	}
	var names []string
	err := s.do(ctx, func(t *txn) error {
		start, end := []byte{kindQueue}, []byte{kindQueue + 1}
		if from != "" {
			start = append(append(start, from...), 0, 0)
		}
		return t.scan(start, end, func(it *pebble.Iterator) (bool, error) {
			names = append(names, string(it.Key()[1:len(it.Key())-1]))
			return len(names) < limit, nil
		})
	})
	if err != nil {
		return nil, wrap("queues", "", err)
	}
	return names, nil
}

// Stats implements [storage.Admin].
func (s *Store) Stats(ctx context.Context, now time.Time, queue string) (storage.Stats, error) {
	var st storage.Stats
	err := s.on(ctx, "stats", queue, now, func(c *call) error {
		if err := c.turnTide(); err != nil {
			return err
		}
		st = storage.Stats{
			Now:     instant(c.now),
			Config:  c.config,
			Delayed: c.count[storage.Ready] - c.due.n,
			Ready:   c.due.n,
			Leased:  c.count[storage.Leased],
			Dead:    c.count[storage.Dead],
			Done:    c.count[storage.Done],
			Keys:    c.keys,
			Total:   c.total,
		}
		for p := range c.waiting {
			oldest, found, err := c.oldest(p)
			if err != nil {
				return err
			}
			if due := instant(oldest.at); found && (st.NextDue.IsZero() || due.Before(st.NextDue)) {
				st.NextDue = due
			}
		}
		return nil
	})
	if err != nil {
		return storage.Stats{}, err
	}
	return st, nil
}

// turnTide moves the tide to the instant of the call. It reads the places of the records that became
// due since the last time, each of them once.
func (c *call) turnTide() error {
	low, high, by := c.due.before, c.now+1, int64(1)
	if low > high {
		low, high, by = high, low, -1
	}
	n := c.due.n
	if low < high && c.count[storage.Ready] > 0 {
		for _, o := range c.orders() {
			from := place{low, 0}
			if from.less(o.low) {
				from = o.low
			}
			if from.at >= high {
				continue
			}
			err := c.t.scan(o.key(from), o.key(place{high, 0}), func(*pebble.Iterator) (bool, error) {
				n += by
				return true, nil
			})
			if err != nil {
				return err
			}
		}
	}
	c.due = tide{c.now + 1, n}
	return nil
}

// Get implements [storage.Admin].
func (s *Store) Get(ctx context.Context, now time.Time, queue, id string) (storage.Record, error) {
	if err := storage.CheckID(id); err != nil {
		return storage.Record{}, wrap("get", queue, err)
	}
	var found storage.Record
	err := s.on(ctx, "get", queue, now, func(c *call) error {
		r, err := c.byID(id)
		if err != nil {
			return err
		}
		found, err = c.whole(r)
		return err
	})
	if err != nil {
		return storage.Record{}, err
	}
	return found, nil
}

// whole is a record with its payload.
func (c *call) whole(r *record) (storage.Record, error) {
	found, encoded, err := c.load(r.id, r.seq, true)
	if err == nil && found == nil {
		err = fmt.Errorf("%w: record %d is gone", storage.ErrFormat, r.seq)
	}
	if err != nil {
		return storage.Record{}, err
	}
	p, _, err := decodePayload(encoded)
	if err != nil {
		return storage.Record{}, c.damaged(r.seq, err)
	}
	return r.view(c.now, p), nil
}

// Cancel implements [storage.Admin]. R10
func (s *Store) Cancel(ctx context.Context, now time.Time, queue, id string, running bool) error {
	if err := storage.CheckID(id); err != nil {
		return wrap("cancel", queue, err)
	}
	return s.on(ctx, "cancel", queue, now, func(c *call) error {
		r, err := c.byID(id)
		if err != nil {
			return err
		}
		if r.state != storage.Ready && (!running || r.state != storage.Leased) {
			return fmt.Errorf("%q is %s: %w", id, r.state, storage.ErrConflict)
		}
		if err := c.know(r.key); err != nil {
			return err
		}
		c.total.Canceled++
		c.drop(r)
		return nil
	})
}
