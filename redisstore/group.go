// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/bidemq/bide/storage"
)

// Keys implements [storage.Admin].
func (s *Store) Keys(ctx context.Context, now time.Time, queue string, f storage.KeyFilter) ([]storage.KeyStats, error) {
	if err := cmp.Or(f.Check(), storage.CheckNow(now), storage.CheckQueue(queue)); err != nil {
		return nil, err
	}
	m, err := s.run(ctx, keysScript, queue, milli(now), f.Key, decimal(int64(f.By)), f.After, decimal(int64(f.Limit)))
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
		return nil, fmt.Errorf("redisstore: queue %q: %w", queue, &ScriptError{"keys", err})
	}
	return keys, nil
}

// Told implements [storage.Admin]. R19
func (s *Store) Told(ctx context.Context, queue string, dead []storage.DeadID) error {
	errs := []error{storage.CheckBatch(len(dead)), storage.CheckQueue(queue)}
	args := make([]string, 1, 1+len(dead))
	for i := range dead {
		errs = append(errs, dead[i].Check())
		args = append(args, string(appendUint(nil, dead[i].Seq, 6))+dead[i].ID)
	}
	if err := cmp.Or(errs...); err != nil || len(dead) == 0 {
		return err
	}
	_, err := s.run(ctx, toldScript, queue, args...)
	return err
}
