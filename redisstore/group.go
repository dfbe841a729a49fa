// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/bidemq/bide/storage"
)

// Keys implements [storage.Admin].
func (s *Store) Keys(ctx context.Context, now time.Time, queue string, f storage.KeyFilter) ([]storage.KeyStats, error) {
	if err := cmp.Or(f.Check(), storage.CheckNow(now), storage.CheckQueue(queue)); err != nil {
		return nil, err
	}
	var found []storage.KeyStats
	err := s.over(ctx, queue, func(l *layout) error {
		pages := make([][]storage.KeyStats, len(l.shards))
		err := l.each(func(i int, at shard) error {
			var err error
			pages[i], err = s.keysAt(ctx, now, at, f)
			return err
		})
		found = slices.Concat(pages...)
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(found, func(a, b storage.KeyStats) int {
		switch f.By {
		case storage.Largest:
			return cmp.Or(cmp.Compare(b.Waiting, a.Waiting), cmp.Compare(a.Key, b.Key))
		case storage.Oldest:
			return cmp.Or(a.Head.Compare(b.Head), cmp.Compare(a.Key, b.Key))
		default:
			return cmp.Compare(a.Key, b.Key)
		}
	})
	return found[:min(f.Limit, len(found))], nil
}

// keysAt lists keys of one shard.
func (s *Store) keysAt(ctx context.Context, now time.Time, at shard, f storage.KeyFilter) ([]storage.KeyStats, error) {
	m, err := s.run(ctx, keysScript, at, milli(now), f.Key, decimal(int64(f.By)), f.After, decimal(int64(f.Limit)))
	if err != nil {
		return nil, err
	}
	row, err := m.ToArray()
	var keys []storage.KeyStats
	for ; err == nil && len(row) >= 4; row = row[4:] {
		var k storage.KeyStats
		var n []int64
		if k.Key, err = row[0].ToString(); err != nil {
			break
		}
		if n, err = ints(row[1:4]); err != nil {
			break
		}
		k.Waiting, k.Leased = n[0], n[1]
		if n[2] >= 0 {
			k.Head = instant(n[2])
		}
		keys = append(keys, k)
	}
	if err != nil {
		return nil, fmt.Errorf("redisstore: queue %q: %w", at.name, &ScriptError{"keys", err})
	}
	return keys, nil
}

// Told implements [storage.Admin]. R19
func (s *Store) Told(ctx context.Context, queue string, dead []storage.DeadID) error {
	errs := []error{storage.CheckBatch(len(dead)), storage.CheckQueue(queue)}
	for i := range dead {
		errs = append(errs, dead[i].Check())
	}
	if err := cmp.Or(errs...); err != nil || len(dead) == 0 {
		return err
	}
	return s.over(ctx, queue, func(l *layout) error {
		args := make([][]string, len(l.shards))
		for _, d := range dead {
			seq, i := l.localSeq(d.Seq)
			if i >= len(args) {
				continue // which is no shard any more
			}
			if args[i] == nil {
				args[i] = []string{""}
			}
			args[i] = append(args[i], string(appendUint(nil, seq, 6))+d.ID)
		}
		return l.each(func(i int, at shard) error {
			if args[i] == nil {
				return nil
			}
			_, err := s.run(ctx, toldScript, at, slices.Clone(args[i])...)
			return err
		})
	})
}
