// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/redis/rueidis"
)

const (
	settleFirst = 10 * time.Second // pause before a process looks whether an older layout is needed
	settleMost  = 10 * time.Minute // and between two looks
	scanStep    = 500              // entries a script looks at
	scanPause   = 5 * time.Millisecond
)

// settleLater looks from time to time whether the records of a queue have left their older homes, until they
// have.
func (s *Store) settleLater(queue string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, already := s.settling.LoadOrStore(queue, true); already || s.life.Err() != nil {
		return
	}
	s.work.Go(func() {
		defer func() {
			s.settling.Delete(queue)
			if s.life.Err() == nil && len(s.layoutOf(queue).counts) > 1 { // it has changed again at this moment
				s.settleLater(queue)
			}
		}()
		for pause := s.settleIn; ; pause = min(2*pause, settleMost) {
			t := time.NewTimer(pause/2 + rand.N(pause))
			select {
			case <-t.C:
			case <-s.life.Done():
				t.Stop()
				return
			}
			if done, err := s.settleLayout(s.life, time.Time{}, queue); err == nil && done {
				return
			} else if err != nil && s.life.Err() == nil {
				s.options.Logger.Warn("could not look whether messages have left their shards", "queue", queue, "error", err)
			}
		}
	})
}

// settleLayout takes the older counts out of the layout of a queue if nothing needs them, and reports whether
// that is so. Dead and done records are moved to where they belong first.
//
// No key or id comes to a shard that is not its newest home: it can only leave. So what a scan does not find
// there is not there, though records come and go meanwhile: the entry of a key, or of an id without one, stays
// as long as it lives.
func (s *Store) settleLayout(ctx context.Context, now time.Time, queue string) (bool, error) {
	done := false
	err := s.over(ctx, queue, func(l *layout) error {
		if len(l.counts) == 1 {
			done = true
			return nil
		}
		for i := range l.shards {
			if free, err := s.isFree(ctx, now, l, i); err != nil || !free {
				return err
			}
		}
		found, config, err := s.truth(ctx, queue)
		if err != nil || found.text != l.text {
			return err
		}
		next := newLayout(queue, l.version+1, []int{l.newest()})
		if err := s.stamp(ctx, l.shards[0], next, config); err != nil {
			return err
		}
		s.know(queue, next, config)
		done = true
		return s.stampAll(ctx, next, l.text, config)
	})
	return done, err
}

// isFree says whether all that a shard has belongs there, by the newest count.
func (s *Store) isFree(ctx context.Context, now time.Time, l *layout, i int) (bool, error) {
	for _, what := range []string{"keys", "records"} {
		away := false
		err := s.scan(ctx, l.shards[i], what, func(kind, name, key string) (bool, error) {
			away = kind == "key" && home(name, l.newest()) != i || kind == "live" && home(namesHome(name, key), l.newest()) != i
			return !away, nil
		})
		if err != nil || away {
			return false, err
		}
	}
	m, err := s.run(ctx, shardFreeScript, l.shards[i], milli(now), l.text)
	if err != nil {
		return false, err
	}
	free, err := m.AsIntSlice()
	if err != nil || len(free) != 2 {
		return false, fmt.Errorf("redisstore: queue %q: %w", l.shards[i].name, &ScriptError{shardFreeScript.name, err})
	}
	if free[0] < free[1] {
		return false, nil
	}
	return true, s.scan(ctx, l.shards[i], "records", func(kind, name, key string) (bool, error) {
		if kind != "finished" || len(name) < 7 {
			return true, nil
		}
		to := home(namesHome(name[6:], key), l.newest())
		if to == i {
			return true, nil
		}
		return true, s.carry(ctx, l, i, to, name)
	})
}

// carry moves a finished record to another shard. If it ends half way the record is in both.
func (s *Store) carry(ctx context.Context, l *layout, from, to int, member string) error {
	value, err := s.client.Do(ctx, s.client.B().Hget().Key(s.keysOf(l.shards[from].name)[1]).Field("\x03"+member).Build()).ToString()
	if rueidis.IsRedisNil(err) {
		return nil // it has been purged
	}
	if err != nil {
		return s.wrap(ctx, err, "carry", l.shards[from].name)
	}
	if _, err := s.run(ctx, shardAdoptScript, l.shards[to], "", member[6:], value); err != nil {
		return err
	}
	_, err = s.run(ctx, shardForgetScript, l.shards[from], "", member)
	return err
}

// scan calls do for the keys or the records of a shard, until it says that this is enough.
func (s *Store) scan(ctx context.Context, at shard, what string, do func(kind, name, key string) (bool, error)) error {
	for cursor := "0"; ; {
		m, err := s.run(ctx, shardScanScript, at, "", what, cursor, decimal(scanStep))
		if err != nil {
			return err
		}
		row, err := m.AsStrSlice()
		if err != nil || len(row)%3 != 1 {
			return fmt.Errorf("redisstore: queue %q: %w", at.name, &ScriptError{shardScanScript.name, err})
		}
		cursor, row = row[0], row[1:]
		for ; len(row) > 0; row = row[3:] {
			if more, err := do(row[0], row[1], row[2]); err != nil || !more {
				return err
			}
		}
		if cursor == "0" {
			return nil
		}
		t := time.NewTimer(scanPause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		}
	}
}
