// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/bidemq/bide/storage"
)

// findLayout looks for a layout that the first shard has lost, or has an older one of, in every shard that a queue
// may have: without it, who has not known of the others would never ask them. The newest is the layout, and the first
// shard gets it unless this is a dry run. It reports whether there was one.
func (s *Store) findLayout(ctx context.Context, queue string, dry bool) (bool, error) {
	gets := make([]rueidis.Completed, 0, storage.MaxShards)
	for i := 1; i < storage.MaxShards; i++ {
		gets = append(gets, s.client.B().Hget().Key(s.keys(shardName(queue, i))[0]).Field("v").Build())
	}
	newest, at := newLayout(queue, 0, []int{1}), 0
	for i, m := range s.client.DoMulti(ctx, gets...) {
		stored, err := m.ToString()
		if rueidis.IsRedisNil(err) {
			continue
		}
		if err != nil {
			return false, s.wrap(ctx, err, "repair", queue)
		}
		l, err := parseLayout(queue, stored)
		if err != nil {
			return false, err
		}
		if l.version > newest.version {
			newest, at = l, i+1
		}
	}
	first, _, err := s.truth(ctx, queue) // which is never older than what another shard had before
	if err != nil || newest.version <= first.version {
		return false, err
	}
	if dry {
		return true, nil
	}
	return true, s.learn(ctx, queue, &layoutError{at: shard{name: shardName(queue, at)}, stored: newest.stored})
}

// repairSpread makes one step, in one shard after the other.
func (s *Store) repairSpread(ctx context.Context, now time.Time, queue string, l *layout, r storage.Repair) (storage.Repaired, error) {
	i, after := 0, r.After
	if number, rest, ok := strings.Cut(r.After, "/"); ok {
		n, err := strconv.Atoi(number)
		if err != nil || n < 0 {
			return storage.Repaired{}, fmt.Errorf("redisstore: %w: repair cannot go on after %q", storage.ErrInvalid, r.After)
		}
		i, after = n, rest
	}
	if i >= len(l.shards) {
		return storage.Repaired{}, nil
	}
	r.After = after
	done, err := s.repairAt(ctx, now, l.shards[i], r)
	if err != nil {
		return done, err
	}
	switch {
	case done.Next == "" && i+1 == len(l.shards):
		if r.DryRun {
			return done, nil
		}
		if _, err := s.settleLayout(ctx, now, queue); err != nil {
			return done, err
		}
		return done, s.relist(ctx, queue)
	case done.Next == "":
		done.Next = strconv.Itoa(i+1) + "/" + phases[0] + ":0"
	case i > 0:
		done.Next = strconv.Itoa(i) + "/" + done.Next
	}
	return done, nil
}
