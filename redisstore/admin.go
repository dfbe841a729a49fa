// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/redis/rueidis"

	"github.com/bidemq/bide/storage"
)

// Queues implements [storage.Admin]. A name that nothing was ever stored under is left out.
func (s *Store) Queues(ctx context.Context, after string, limit int) ([]string, error) {
	if err := storage.CheckLimit(limit); err != nil {
		return nil, err
	}
	if err := s.open(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := s.within(ctx)
	defer cancel()
	var found []string
	for len(found) < limit {
		low := "-"
		if after != "" {
			low = "(" + after
		}
		names, err := again(ctx, true, func() ([]string, error) {
			return s.client.Do(ctx, s.client.B().Zrangebylex().Key(listKey(s.options.Namespace)).Min(low).Max("+").
				Limit(0, int64(limit)).Build()).AsStrSlice()
		})
		if err != nil {
			return nil, s.wrap(ctx, err, "queues", "")
		}
		exist, err := again(ctx, true, func() ([]string, error) { return s.existing(ctx, names) })
		if err != nil {
			return nil, s.wrap(ctx, err, "queues", "")
		}
		found = append(found, exist...)
		if len(names) < limit {
			break
		}
		after = names[len(names)-1]
	}
	return found[:min(limit, len(found))], nil
}

// existing returns those of the queues that exist.
func (s *Store) existing(ctx context.Context, names []string) ([]string, error) {
	commands := make([]rueidis.Completed, len(names))
	for i, name := range names {
		commands[i] = s.client.B().Exists().Key(s.keys(name)[0]).Build()
	}
	var found []string
	for i, result := range s.client.DoMulti(ctx, commands...) {
		n, err := result.AsInt64()
		if err != nil {
			return nil, err
		}
		if n == 1 {
			found = append(found, names[i])
		}
	}
	return found, nil
}

// Stats implements [storage.Admin].
func (s *Store) Stats(ctx context.Context, now time.Time, queue string) (storage.Stats, error) {
	if err := cmp.Or(storage.CheckNow(now), storage.CheckQueue(queue)); err != nil {
		return storage.Stats{}, err
	}
	var sum storage.Stats
	err := s.over(ctx, queue, func(l *layout) error {
		parts := make([]storage.Stats, len(l.shards))
		err := l.each(func(i int, at shard) error {
			var err error
			parts[i], err = s.statsAt(ctx, now, at)
			return err
		})
		sum = parts[0]
		for i := range parts[1:] {
			addStats(&sum, &parts[1+i])
		}
		sum.Config.Shards = l.configured()
		return err
	})
	return sum, err
}

// statsAt counts one shard.
func (s *Store) statsAt(ctx context.Context, now time.Time, at shard) (storage.Stats, error) {
	queue := at.name
	m, err := s.run(ctx, statsScript, at, milli(now))
	if err != nil {
		return storage.Stats{}, err
	}
	reply, err := m.ToArray()
	const before = 12
	if err != nil || len(reply) < before+20 {
		return storage.Stats{}, fmt.Errorf("redisstore: queue %q: %w", queue, &ScriptError{"stats", err})
	}
	st := storage.Stats{}
	var due int64
	numbers := statsNumbers(&st, &due)
	read, err := ints(reply[5:])
	var ms int64
	if err == nil {
		ms, err = reply[0].AsInt64()
	}
	if err == nil {
		st.Config, err = readConfig(reply[1:5])
	}
	if err != nil || len(read) != len(numbers) {
		return storage.Stats{}, fmt.Errorf("redisstore: queue %q: %w", queue, &ScriptError{"stats", err})
	}
	for i, n := range numbers {
		*n = read[i]
	}
	st.Now = instant(ms)
	if due >= 0 {
		st.NextDue = instant(due)
	}
	return st, nil
}

// statsNumbers are the numbers of a queue, in the order of stats.lua.
func statsNumbers(st *storage.Stats, due *int64) []*int64 {
	t := &st.Total
	return []*int64{
		&st.Delayed, &st.Ready, &st.Leased, &st.Dead, &st.Done, &st.Keys, due,
		&t.Enqueued, &t.Claimed, &t.Acked, &t.Wakeups, &t.EmptyClaims,
		&t.Duplicates, &t.Replaced, &t.Reruns, &t.Retried, &t.Released,
		&t.Lapsed, &t.Died, &t.Redriven, &t.Expired, &t.Canceled, &t.Purged,
		&t.ClockSteps, &t.Dropped, &t.Retained, &t.Trimmed,
	}
}

// addStats counts another shard in.
func addStats(sum, more *storage.Stats) {
	to, from := statsNumbers(sum, new(int64)), statsNumbers(more, new(int64))
	for i := range to {
		*to[i] += *from[i]
	}
	if more.Now.After(sum.Now) {
		sum.Now = more.Now
	}
	if d := more.NextDue; !d.IsZero() && (sum.NextDue.IsZero() || d.Before(sum.NextDue)) {
		sum.NextDue = d
	}
}

func flag(b bool) string {
	if b {
		return "1"
	}
	return "0"
}
