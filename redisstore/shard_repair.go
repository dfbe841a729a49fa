// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/bidemq/bide/storage"
)

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
		if _, err := s.settleLayout(ctx, queue); err != nil {
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
