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
	m, err := s.run(ctx, statsScript, queue, milli(now))
	if err != nil {
		return storage.Stats{}, err
	}
	reply, err := m.ToArray()
	const before = 12
	if err != nil || len(reply) < before+20 {
		return storage.Stats{}, fmt.Errorf("redisstore: queue %q: %w", queue, &ScriptError{"stats", err})
	}
	st := storage.Stats{}
	t := &st.Total
	numbers := []*int64{
		&st.Delayed, &st.Ready, &st.Leased, &st.Dead, &st.Done, &st.Keys, new(int64),
		&t.Enqueued, &t.Claimed, &t.Acked, &t.Wakeups, &t.EmptyClaims,
		&t.Duplicates, &t.Replaced, &t.Reruns, &t.Retried, &t.Released,
		&t.Lapsed, &t.Died, &t.Redriven, &t.Expired, &t.Canceled, &t.Purged,
		&t.ClockSteps, &t.Dropped, &t.Retained, &t.Trimmed,
	}
	read, err := ints(reply[5:])
	var at int64
	if err == nil {
		at, err = reply[0].AsInt64()
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
	st.Now = instant(at)
	if due := *numbers[6]; due >= 0 {
		st.NextDue = instant(due)
	}
	return st, nil
}

func flag(b bool) string {
	if b {
		return "1"
	}
	return "0"
}
