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
	reply, err := m.AsIntSlice()
	if err != nil || len(reply) < 9+17 {
		return storage.Stats{}, fmt.Errorf("redisstore: queue %q: %w", queue, &ScriptError{"stats", err})
	}
	st := storage.Stats{
		Now:     instant(reply[0]),
		Config:  config(reply[1:4]),
		Delayed: reply[4],
		Ready:   reply[5],
		Leased:  reply[6],
		Dead:    reply[7],
	}
	if reply[8] >= 0 {
		st.NextDue = instant(reply[8])
	}
	t := &st.Total
	for i, counter := range []*int64{
		&t.Enqueued, &t.Duplicates, &t.Replaced, &t.Reruns, &t.Claimed, &t.Acked, &t.Retried, &t.Released,
		&t.Lapsed, &t.Died, &t.Redriven, &t.Expired, &t.Canceled, &t.Purged,
		&t.Wakeups, &t.EmptyClaims, &t.ClockSteps,
	} {
		*counter = reply[9+i]
	}
	return st, nil
}

func config(reply []int64) storage.QueueConfig {
	return storage.QueueConfig{
		Paused:        reply[0] == 1,
		ExpireIn:      time.Duration(reply[1]) * time.Millisecond,
		MaxDeliveries: int(reply[2]),
	}
}

// Configure implements [storage.Admin]. R15
func (s *Store) Configure(ctx context.Context, queue string, e storage.ConfigEdit) (storage.QueueConfig, error) {
	if err := cmp.Or(e.Check(), storage.CheckQueue(queue)); err != nil {
		return storage.QueueConfig{}, err
	}
	var paused, expireIn, maxDeliveries string
	if e.Paused != nil {
		paused = flag(*e.Paused)
	}
	if e.ExpireIn != nil {
		expireIn = decimal(length(*e.ExpireIn))
	}
	if e.MaxDeliveries != nil {
		maxDeliveries = decimal(int64(*e.MaxDeliveries))
	}
	if e != (storage.ConfigEdit{}) {
		if err := s.enlist(ctx, queue); err != nil {
			return storage.QueueConfig{}, err
		}
	}
	m, err := s.run(ctx, configureScript, queue, "", paused, expireIn, maxDeliveries)
	if err != nil {
		return storage.QueueConfig{}, err
	}
	reply, err := m.AsIntSlice()
	if err != nil || len(reply) != 3 {
		return storage.QueueConfig{}, fmt.Errorf("redisstore: queue %q: %w", queue, &ScriptError{"configure", err})
	}
	return config(reply), nil
}

func flag(b bool) string {
	if b {
		return "1"
	}
	return "0"
}
