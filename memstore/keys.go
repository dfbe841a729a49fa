// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"context"
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
	if f.Key != "" {
		if g := c.keys[f.Key]; g != nil && (f.By != storage.Oldest || g.stands.waiting > 0) {
			return []storage.KeyStats{g.stats()}, nil
		}
		return nil, nil
	}
	var keys []storage.KeyStats
	list := func(g *group) bool {
		if g.key > f.After || f.By != storage.ByName {
			keys = append(keys, g.stats())
		}
		return len(keys) < f.Limit
	}
	switch f.By {
	case storage.ByName:
		c.names.Ascend(&group{key: f.After}, list)
	case storage.Largest:
		c.sizes.Scan(list)
	case storage.Oldest:
		c.heads.Scan(list)
	}
	return keys, nil
}

func (g *group) stats() storage.KeyStats {
	return storage.KeyStats{Key: g.key, Waiting: int64(g.waiting.Len()), Leased: int64(g.leased.Len()), Head: g.stands.head}
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
