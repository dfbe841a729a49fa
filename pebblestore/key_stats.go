// SPDX-License-Identifier: Apache-2.0

package pebblestore

import (
	"context"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/bidemq/bide/storage"
)

// Keys implements [storage.Admin].
func (s *Store) Keys(ctx context.Context, now time.Time, queue string, f storage.KeyFilter) ([]storage.KeyStats, error) {
	if err := f.Check(); err != nil {
		return nil, wrap("keys", queue, err)
	}
	var stats []storage.KeyStats
	err := s.on(ctx, "keys", queue, now, func(c *call) error {
		c.flush()
		keys, err := c.listKeys(f)
		if err != nil {
			return err
		}
		for _, key := range keys {
			g, err := c.alive(key)
			if err != nil {
				return err
			}
			if g == nil || f.By == storage.Oldest && g.waiting == 0 {
				continue
			}
			k := storage.KeyStats{Key: key, Waiting: g.waiting, Leased: int64(len(c.leases.byKey[key]))}
			found, err := c.headOf(g)
			if err != nil {
				return err
			}
			if found {
				k.Head = instant(g.head.due)
			}
			stats = append(stats, k)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return stats, nil
}

// listKeys returns the first keys in the order of a filter.
func (c *call) listKeys(f storage.KeyFilter) ([]string, error) {
	if f.Key != "" {
		return []string{f.Key}, nil
	}
	kind := byte(kindKey)
	switch f.By {
	case storage.ByName:
	case storage.Largest:
		kind = kindSize
	case storage.Oldest:
		kind = kindHead
	}
	all := prefix(kind, c.name)
	start := all
	if f.After != "" {
		start = append(idKey(kind, c.name, f.After), 0)
	}
	var keys []string
	err := c.t.scanGrouped(start, after(all), func(it *pebble.Iterator) (bool, error) {
		rest := it.Key()[len(all):]
		key := string(rest)
		if kind != kindKey {
			var err error
			if key, err = keyOf(kind, rest); err != nil {
				return false, err
			}
		}
		keys = append(keys, key)
		return len(keys) < f.Limit, nil
	})
	return keys, err
}

// Told implements [storage.Admin]. R19
func (s *Store) Told(ctx context.Context, queue string, dead []storage.DeadID) error {
	err := check(storage.CheckQueue(queue), storage.CheckBatch(len(dead)))
	for i := range dead {
		err = check(err, dead[i].Check())
	}
	if err != nil {
		return wrap("told", queue, err)
	}
	dead = slices.Clone(dead)
	err = s.do(ctx, func(t *txn) error {
		return t.still(queue, func(c *call) error {
			for _, d := range dead {
				if err := c.told(d); err != nil {
					return err
				}
			}
			return nil
		})
	})
	return wrap("told", queue, err)
}

func (c *call) told(d storage.DeadID) error {
	r, _, err := c.load(d.ID, d.Seq, false)
	if err != nil || r == nil || r.id != d.ID || r.state != storage.Dead || !r.untold {
		return err
	}
	c.mark()
	c.t.del(placeKey(kindUntold, c.name, r.at()))
	r.untold = false
	c.remember(r)
	return nil
}
