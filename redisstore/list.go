// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/bidemq/bide/storage"
)

// maxSeq is above every sequence.
const maxSeq = 1<<48 - 1

// filterArgs are the arguments of select.lua, behind now.
func filterArgs(now time.Time, f storage.Filter) []string {
	args := []string{milli(now), f.State.String(), f.ID, f.Key, "", "", flag(f.Desc), "", "", decimal(int64(f.Limit))}
	if f.Untold {
		args[1] = "untold"
	}
	if !f.From.IsZero() {
		args[4] = decimal(storage.DueMilli(f.From))
	}
	if !f.To.IsZero() {
		args[5] = decimal(storage.DueMilli(f.To))
	}
	if f.After != (storage.Position{}) {
		at, seq := f.After.At.UnixMilli(), min(max(f.After.Seq, 0), maxSeq)
		if f.After.At.Nanosecond()%int(time.Millisecond) != 0 {
			seq = maxSeq // between two milliseconds: behind all of the first
		}
		args[7], args[8] = decimal(at), decimal(seq)
	}
	return args
}

// page reads more, at and seq of a reply.
func page(head []int64) (more bool, last storage.Position) {
	if head[1] >= 0 {
		last = storage.Position{At: instant(head[1]), Seq: head[2]}
	}
	return head[0] == 1, last
}

// List implements [storage.Admin].
func (s *Store) List(ctx context.Context, now time.Time, queue string, f storage.Filter) (storage.Page, error) {
	err := cmp.Or(f.Check(storage.Delayed, storage.Ready, storage.Leased, storage.Dead, storage.Done),
		storage.CheckNow(now), storage.CheckQueue(queue))
	if err != nil {
		return storage.Page{}, err
	}
	var p storage.Page
	err = s.over(ctx, queue, func(l *layout) error {
		p, _, err = s.listSpread(ctx, now, l, f)
		return err
	})
	return p, err
}

// listAt returns records of one shard.
func (s *Store) listAt(ctx context.Context, now time.Time, at shard, f storage.Filter) (storage.Page, error) {
	queue := at.name
	m, err := s.run(ctx, listScript, at, filterArgs(now, f)...)
	if err != nil {
		return storage.Page{}, err
	}
	reply, err := m.ToArray()
	if err == nil && len(reply) < 4 {
		err = fmt.Errorf("got %d fields", len(reply))
	}
	var head []int64
	if err == nil {
		head, err = ints(reply[:4])
	}
	var p storage.Page
	if err == nil {
		p.More, p.Last = page(head[1:])
		p.Records, err = decodeRows(reply[4:], instant(head[0]))
	}
	if err != nil {
		return storage.Page{}, fmt.Errorf("redisstore: queue %q: %w", queue, &ScriptError{"list", err})
	}
	return p, nil
}

// Purge implements [storage.Admin].
func (s *Store) Purge(ctx context.Context, now time.Time, queue string, f storage.Filter) (storage.Batch, error) {
	err := cmp.Or(f.Check(storage.Delayed, storage.Ready, storage.Dead, storage.Done), storage.CheckNow(now), storage.CheckQueue(queue))
	if err != nil {
		return storage.Batch{}, err
	}
	return s.inSteps(ctx, now, queue, f, s.purgeAt)
}

// purgeAt removes records of one shard.
func (s *Store) purgeAt(ctx context.Context, now time.Time, at shard, f storage.Filter) (storage.Batch, error) {
	queue := at.name
	m, err := s.run(ctx, purgeScript, at, filterArgs(now, f)...)
	if err != nil {
		return storage.Batch{}, err
	}
	reply, err := m.AsIntSlice()
	if err != nil || len(reply) != 4 {
		return storage.Batch{}, fmt.Errorf("redisstore: queue %q: %w", queue, &ScriptError{"purge", err})
	}
	b := storage.Batch{Count: int(reply[0])}
	b.More, b.Last = page(reply[1:])
	return b, nil
}

// Redrive implements [storage.Admin].
func (s *Store) Redrive(ctx context.Context, now time.Time, queue string, f storage.Filter) (storage.Batch, error) {
	if err := cmp.Or(f.Check(storage.Dead), storage.CheckNow(now), storage.CheckQueue(queue)); err != nil {
		return storage.Batch{}, err
	}
	return s.redriveSpread(ctx, now, queue, f)
}

// redriveAt makes dead records of one shard ready.
func (s *Store) redriveAt(ctx context.Context, now time.Time, at shard, f storage.Filter) (storage.Batch, error) {
	queue := at.name
	m, err := s.run(ctx, redriveScript, at, filterArgs(now, f)...)
	if err != nil {
		return storage.Batch{}, err
	}
	if m.IsString() {
		word, _ := m.ToString()
		return storage.Batch{}, refusal(word, queue, f.ID)
	}
	reply, err := m.AsIntSlice()
	if err != nil || len(reply) != 5 {
		return storage.Batch{}, fmt.Errorf("redisstore: queue %q: %w", queue, &ScriptError{"redrive", err})
	}
	b := storage.Batch{Count: int(reply[0]), Skipped: int(reply[1])}
	b.More, b.Last = page(reply[2:])
	return b, nil
}
