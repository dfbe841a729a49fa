// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/bidemq/bide/storage"
)

// Keys implements [storage.Admin].
func (s *Store) Keys(ctx context.Context, now time.Time, queue string, f storage.KeyFilter) ([]storage.KeyStats, error) {
	if err := f.Check(); err != nil {
		return nil, err
	}
	c, err := s.begin(ctx, now, queue)
	if err != nil {
		return nil, err
	}
	defer c.end()
	var keys []storage.KeyStats
	for _, g := range c.groups {
		k := storage.KeyStats{Key: g.key, Waiting: int64(g.waiting.Len()), Leased: int64(g.leased.Len())}
		if head, ok := g.waiting.Min(); ok {
			k.Head = head.Due
		}
		switch {
		case f.Key != "" && f.Key != k.Key, k.Key <= f.After, f.By == storage.Oldest && k.Waiting == 0:
		default:
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b storage.KeyStats) int {
		order := 0
		switch f.By {
		case storage.ByName:
		case storage.Largest:
			order = cmp.Compare(b.Waiting, a.Waiting)
		case storage.Oldest:
			order = a.Head.Compare(b.Head)
		}
		return cmp.Or(order, cmp.Compare(a.Key, b.Key))
	})
	return keys[:min(len(keys), f.Limit)], nil
}

// Told implements [storage.Admin].
func (s *Store) Told(ctx context.Context, queue string, dead []storage.DeadID) error {
	if err := storage.CheckBatch(len(dead)); err != nil {
		return err
	}
	for i := range dead {
		if err := dead[i].Check(); err != nil {
			return err
		}
	}
	c, err := s.lock(ctx, queue)
	if err != nil {
		return err
	}
	defer c.end()
	for _, d := range dead {
		for _, r := range c.finished[d.ID] {
			if r.Seq == d.Seq {
				r.Untold = false
			}
		}
	}
	return nil
}
