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

// Get implements [storage.Admin].
func (s *Store) Get(ctx context.Context, now time.Time, queue, id string) (storage.Record, error) {
	if err := cmp.Or(storage.CheckNow(now), storage.CheckQueue(queue), storage.CheckID(id)); err != nil {
		return storage.Record{}, err
	}
	var found storage.Record
	err := s.over(ctx, queue, func(l *layout) error {
		r, i, err := s.find(ctx, now, l, id)
		found = r
		found.Seq = l.spreadSeq(r.Seq, i)
		return err
	})
	return found, err
}

// getAt returns the record that an id means in one shard.
func (s *Store) getAt(ctx context.Context, now time.Time, at shard, id string) (storage.Record, error) {
	m, err := s.run(ctx, getScript, at, milli(now), id)
	if err != nil {
		return storage.Record{}, err
	}
	reply, err := m.ToArray()
	if err == nil && len(reply) == 1 {
		return storage.Record{}, refusal("none", at.name, id)
	}
	return oneRow(reply, err, "get", at.name)
}

// oneRow reads an instant and a row behind it.
func oneRow(reply []rueidis.RedisMessage, err error, name, queue string) (storage.Record, error) {
	if err == nil && len(reply) != 5 {
		err = fmt.Errorf("got %d fields", len(reply))
	}
	var now int64
	if err == nil {
		now, err = reply[0].AsInt64()
	}
	var rows []storage.Record
	if err == nil {
		rows, err = decodeRows(reply[1:], instant(now))
	}
	if err != nil {
		return storage.Record{}, fmt.Errorf("redisstore: queue %q: %w", queue, &ScriptError{name, err})
	}
	return rows[0], nil
}

// refusal is the error for the word that a script about one record answers with, nil for "ok".
func refusal(word, queue, id string) error {
	category := storage.ErrConflict
	switch word {
	case "ok":
		return nil
	case "none":
		return fmt.Errorf("redisstore: %w: %q in queue %q", storage.ErrNotFound, id, queue)
	case "ordered":
		return fmt.Errorf("redisstore: %w: %q in queue %q, which is ordered, cannot have a priority", storage.ErrInvalid, id, queue)
	case "expired":
		return fmt.Errorf("redisstore: %w: %q in queue %q would be past its expiry", storage.ErrExpired, id, queue)
	}
	return fmt.Errorf("redisstore: %w: %q in queue %q is %s", category, id, queue, word)
}

// Edit implements [storage.Admin]. R10
func (s *Store) Edit(ctx context.Context, now time.Time, queue, id string, e storage.Edit) (storage.Record, error) {
	if err := cmp.Or(e.Check(s.options.MaxBody), storage.CheckNow(now), storage.CheckQueue(queue), storage.CheckID(id)); err != nil {
		return storage.Record{}, err
	}
	var due, priority, body, headers string
	size := 0
	if e.Due != nil {
		due = "=" + decimal(storage.DueMilli(*e.Due))
	}
	if e.Delay != nil {
		due = "+" + decimal(length(*e.Delay))
	}
	if e.Priority != nil {
		priority = decimal(int64(*e.Priority))
	}
	if e.Body != nil {
		body = "=" + string(*e.Body)
	}
	if e.Headers != nil {
		var encoded []byte
		encoded, size = encodeHeaders(*e.Headers)
		headers = "=" + string(encoded)
	}
	var edited storage.Record
	err := s.byID(ctx, now, queue, id, func(l *layout, i int) error {
		r, err := s.editAt(ctx, l.shards[i], id, []string{milli(now), id, due, priority, body, headers, decimal(int64(size))})
		edited = r
		edited.Seq = l.spreadSeq(r.Seq, i)
		return err
	})
	return edited, err
}

// editAt changes the record that an id means in one shard, as the arguments of edit.lua say.
func (s *Store) editAt(ctx context.Context, at shard, id string, args []string) (storage.Record, error) {
	queue := at.name
	m, err := s.run(ctx, editScript, at, args...)
	if err != nil {
		return storage.Record{}, err
	}
	reply, err := m.ToArray()
	word := ""
	if err == nil && len(reply) > 0 {
		word, err = reply[0].ToString()
	}
	if err != nil || len(reply) == 0 {
		return storage.Record{}, fmt.Errorf("redisstore: queue %q: %w", queue, &ScriptError{"edit", err})
	}
	if err := refusal(word, queue, id); err != nil {
		return storage.Record{}, err
	}
	return oneRow(reply[1:], nil, "edit", queue)
}

// Cancel implements [storage.Admin]. R10
func (s *Store) Cancel(ctx context.Context, now time.Time, queue, id string, running bool) error {
	if err := cmp.Or(storage.CheckNow(now), storage.CheckQueue(queue), storage.CheckID(id)); err != nil {
		return err
	}
	return s.byID(ctx, now, queue, id, func(l *layout, i int) error {
		return s.cancelAt(ctx, now, l.shards[i], id, running)
	})
}

// cancelAt removes the record that an id means in one shard.
func (s *Store) cancelAt(ctx context.Context, now time.Time, at shard, id string, running bool) error {
	queue := at.name
	m, err := s.run(ctx, cancelScript, at, milli(now), id, flag(running))
	if err != nil {
		return err
	}
	word, err := m.ToString()
	if err != nil {
		return fmt.Errorf("redisstore: queue %q: %w", queue, &ScriptError{"cancel", err})
	}
	return refusal(word, queue, id)
}
