// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/bidemq/bide/storage"
)

// byID calls do for the shard that holds the record that an id means: first for its home if it has no key,
// and if that has no live record of it, for the shard that has one, or the latest of those that are finished.
func (s *Store) byID(ctx context.Context, now time.Time, queue, id string, do func(l *layout, i int) error) error {
	return s.over(ctx, queue, func(l *layout) error {
		first := home(id, l.newest())
		err := do(l, first)
		if len(l.shards) == 1 || !errors.Is(err, storage.ErrNotFound) && !errors.Is(err, storage.ErrConflict) {
			return err
		}
		_, i, found := s.find(ctx, now, l, id)
		switch {
		case found != nil && !errors.Is(found, storage.ErrNotFound):
			return found // it may live in a shard that has not answered
		case found != nil || i == first:
			return err
		}
		return do(l, i)
	})
}

// find returns the record that an id means, and its shard.
func (s *Store) find(ctx context.Context, now time.Time, l *layout, id string) (storage.Record, int, error) {
	first := home(id, l.newest())
	best, err := s.getAt(ctx, now, l.shards[first], id)
	if len(l.shards) == 1 || err != nil && !errors.Is(err, storage.ErrNotFound) || err == nil && live(&best) {
		return best, first, err
	}
	var mu sync.Mutex
	none, at := err, first
	err = l.each(func(i int, in shard) error {
		if i == first {
			return nil
		}
		r, err := s.getAt(ctx, now, in, id)
		if errors.Is(err, storage.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		if none != nil || live(&r) || !live(&best) && r.Finished.After(best.Finished) {
			best, at, none = r, i, nil
		}
		return nil
	})
	if none == nil && live(&best) {
		return best, at, nil // whatever the shards say that have not answered: one lives at a time
	}
	if err == nil && none != nil {
		err = fmt.Errorf("redisstore: %w: %q in queue %q", storage.ErrNotFound, id, l.shards[0].name)
	}
	return best, at, err
}

func live(r *storage.Record) bool { return r.State != storage.Dead && r.State != storage.Done }
