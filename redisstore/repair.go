// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bidemq/bide/storage"
)

// phases of a repair, in order: first grants that are lost, so that records are in their state, and
// everything that records want, then everything that wants records, then what is counted.
var phases = []string{
	"grants", "records", "places", "keyed", "members", "keys", "turns", "heads", "sizes", "idle",
	"leases", "expiries", "windows", "dead", "done", "untold", "names", "waiters", "numbers",
}

// Repair implements [storage.Admin]. Records are the truth; a leased record that is missing among
// the leases keeps its lease. A step may look at some more entries than the limit says. R14
func (s *Store) Repair(ctx context.Context, now time.Time, queue string, r storage.Repair) (storage.Repaired, error) {
	if err := cmp.Or(r.Check(), storage.CheckNow(now), storage.CheckQueue(queue)); err != nil {
		return storage.Repaired{}, err
	}
	var done storage.Repaired
	if err := s.open(ctx); err != nil {
		return done, err
	}
	lost := false
	if r.After == "" {
		var err error
		if lost, err = s.findLayout(ctx, queue, r.DryRun); err != nil {
			return done, err
		}
	}
	err := s.over(ctx, queue, func(l *layout) error {
		var err error
		done, err = s.repairSpread(ctx, now, queue, l, r)
		return err
	})
	if lost {
		done.Fixes = append(done.Fixes, storage.Fix{What: "queue without its layout", Count: 1})
	}
	return done, err
}

// repairAt makes one step in one shard.
func (s *Store) repairAt(ctx context.Context, now time.Time, at shard, r storage.Repair) (storage.Repaired, error) {
	queue := at.name
	phase, cursor := phases[0], "0"
	if r.After != "" {
		var ok bool
		if phase, cursor, ok = strings.Cut(r.After, ":"); !ok || !slices.Contains(phases, phase) {
			return storage.Repaired{}, fmt.Errorf("redisstore: %w: repair cannot go on after %q", storage.ErrInvalid, r.After)
		}
	}
	m, err := s.run(ctx, repairScript, at, milli(now), flag(r.DryRun), phase, cursor, decimal(int64(r.Limit)))
	if err != nil {
		return storage.Repaired{}, err
	}
	damaged := func(err error) (storage.Repaired, error) {
		return storage.Repaired{}, fmt.Errorf("redisstore: queue %q: %w", queue, &ScriptError{"repair", err})
	}
	reply, err := m.ToArray()
	if err != nil || len(reply) < 2 {
		return damaged(err)
	}
	checked, err := reply[0].AsInt64()
	if err != nil {
		return damaged(err)
	}
	if cursor, err = reply[1].ToString(); err != nil {
		return damaged(err)
	}
	done := storage.Repaired{Checked: int(checked)}
	for row := reply[2:]; len(row) >= 2; row = row[2:] {
		what, err := row[0].ToString()
		if err != nil {
			return damaged(err)
		}
		count, err := row[1].AsInt64()
		if err != nil {
			return damaged(err)
		}
		done.Fixes = append(done.Fixes, storage.Fix{What: what, Count: int(count)})
	}
	if next := slices.Index(phases, phase) + 1; cursor != "0" {
		done.Next = phase + ":" + cursor
	} else if next < len(phases) {
		done.Next = phases[next] + ":0"
	}
	return done, nil
}

// relist makes sure that the list of queues has a queue that exists.
func (s *Store) relist(ctx context.Context, queue string) error {
	s.listed.Delete(queue)
	return s.enlist(ctx, queue)
}
