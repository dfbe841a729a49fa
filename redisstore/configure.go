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

// Configure implements [storage.Admin]. It reads the configuration, edits it here, where the rules
// for that are, and stores it if it has not changed meanwhile. R15
func (s *Store) Configure(ctx context.Context, queue string, e storage.ConfigEdit) (storage.QueueConfig, error) {
	if err := cmp.Or(e.Check(), storage.CheckQueue(queue)); err != nil {
		return storage.QueueConfig{}, err
	}
	l, stored, err := s.truth(ctx, queue)
	if err != nil {
		return storage.QueueConfig{}, err
	}
	if stored.Shards = l.configured(); e == (storage.ConfigEdit{}) {
		return stored, nil
	}
	if err := s.enlist(ctx, queue); err != nil {
		return storage.QueueConfig{}, err
	}
	for range tries {
		config, err := e.Apply(stored)
		if err != nil {
			return storage.QueueConfig{}, err
		}
		config, done, err := s.reconfigure(ctx, queue, l, stored, config)
		if err != nil {
			return storage.QueueConfig{}, err
		}
		if done {
			return config, nil
		}
		if l, stored, err = s.truth(ctx, queue); err != nil {
			return storage.QueueConfig{}, err
		}
		stored.Shards = l.configured()
	}
	return storage.QueueConfig{}, fmt.Errorf("redisstore: queue %q: %w: its configuration does not stay", queue, storage.ErrUnavailable)
}

// reconfigure changes the configuration of a queue if it is still what it was, and reports that.
func (s *Store) reconfigure(ctx context.Context, queue string, l *layout, was, config storage.QueueConfig) (storage.QueueConfig, bool, error) {
	at, next, text := shard{name: queue, layout: l.stored, stamps: true}, l, ""
	if l.version > 0 || config.Shards > 1 {
		var err error
		if next, err = l.next(queue, &was, &config); err != nil {
			return config, false, err
		}
		text = next.text
	}
	outcome, now, _, err := s.configureAt(ctx, at, "1", config, configText(was), text)
	switch {
	case err != nil:
		return config, false, ignoreLayout(err)
	case outcome == 1:
		return config, false, nil
	case outcome == 2:
		return config, false, fmt.Errorf("redisstore: %w: queue %q has messages with keys waiting or leased, their order cannot change",
			storage.ErrConflict, queue)
	}
	if next.version == 0 {
		return now, true, nil
	}
	s.know(queue, next, now)
	now.Shards = next.configured()
	return now, true, s.stampAll(ctx, next, l.text, config)
}

// configureAt reads the configuration of one shard, or changes it, and returns what v is in meta.
func (s *Store) configureAt(ctx context.Context, at shard, edits string, c storage.QueueConfig, was, layout string) (int64, storage.QueueConfig, string, error) {
	queue := at.name
	m, err := s.run(ctx, configureScript, at, "", edits, flag(c.Paused), decimal(length(c.ExpireIn)), decimal(int64(c.MaxDeliveries)),
		settings(&c), was, layout)
	if err != nil {
		return 0, storage.QueueConfig{}, "", err
	}
	reply, err := m.ToArray()
	if err == nil && len(reply) != 6 {
		err = fmt.Errorf("got %d fields", len(reply))
	}
	var outcome int64
	var stored storage.QueueConfig
	if err == nil {
		outcome, err = reply[0].AsInt64()
	}
	if err == nil {
		stored, err = readConfig(reply[1:5])
	}
	v := ""
	if err == nil {
		v, err = reply[5].ToString()
	}
	if err != nil {
		return 0, storage.QueueConfig{}, "", fmt.Errorf("redisstore: queue %q: %w", queue, &ScriptError{"configure", err})
	}
	return outcome, stored, v, nil
}

// configText is the whole of a configuration as configure.lua compares it.
func configText(c storage.QueueConfig) string {
	return flag(c.Paused) + " " + decimal(length(c.ExpireIn)) + " " + decimal(int64(c.MaxDeliveries)) + " " + settings(&c)
}

// settings packs numbers as SETTINGS in settings.lua says.
func settings(c *storage.QueueConfig) string {
	var b []byte
	for _, f := range []struct {
		n    int64
		size int
	}{
		{bit(c.Ordered), 1},
		{int64(c.KeyLimit), 2},
		{int64(c.MinBatch), 2},
		{length(c.Linger), 6},
		{length(c.KeyIdle), 6},
		{int64(c.MaxLen), 6},
		{int64(c.MaxPerKey), 6},
		{int64(c.Overflow), 1},
		{length(c.RetainFor), 6},
		{int64(c.RetainCount), 6},
		{c.RetainBytes, 6},
		{length(c.DeadFor), 6},
		{int64(c.DeadCount), 6},
		{bit(c.TellDead), 1},
	} {
		b = appendUint(b, f.n, f.size)
	}
	return string(b)
}

const settingsSize = 61

func bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// readConfig is the reverse of what configure.lua and stats.lua answer.
func readConfig(reply []rueidis.RedisMessage) (storage.QueueConfig, error) {
	head, err := ints(reply[:3])
	if err != nil {
		return storage.QueueConfig{}, err
	}
	text, err := reply[3].ToString()
	if err != nil {
		return storage.QueueConfig{}, err
	}
	if len(text) != settingsSize {
		return storage.QueueConfig{}, fmt.Errorf("%w: settings of %d bytes", storage.ErrFormat, len(text))
	}
	at := 0
	next := func(size int) int64 {
		at += size
		return uintAt(text, at-size, size)
	}
	span := func() time.Duration { return time.Duration(next(6)) * time.Millisecond }
	c := storage.QueueConfig{
		Paused:        head[0] == 1,
		ExpireIn:      time.Duration(head[1]) * time.Millisecond,
		MaxDeliveries: int(head[2]),
	}
	c.Ordered, c.KeyLimit, c.MinBatch = next(1) == 1, int(next(2)), int(next(2))
	c.Linger, c.KeyIdle = span(), span()
	c.MaxLen, c.MaxPerKey, c.Overflow = int(next(6)), int(next(6)), storage.Overflow(next(1))
	c.RetainFor, c.RetainCount, c.RetainBytes = span(), int(next(6)), next(6)
	c.DeadFor, c.DeadCount, c.TellDead = span(), int(next(6)), next(1) == 1
	return c, nil
}
