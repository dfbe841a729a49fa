// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/bidemq/bide/storage"
)

// sendBytes is about how much one script call brings. A batch above it goes in several.
const sendBytes = 8 << 20

// termsSize and resultSize are the lengths of what enqueue.lua is told and says about a record.
const termsSize, resultSize = 15, 13

// Enqueue implements [storage.Engine]. R1
func (s *Store) Enqueue(ctx context.Context, now time.Time, queue string, recs []storage.Record) ([]storage.EnqueueResult, error) {
	if err := cmp.Or(storage.CheckBatch(len(recs)), storage.CheckNow(now), storage.CheckQueue(queue)); err != nil {
		return nil, err
	}
	results := make([]storage.EnqueueResult, len(recs))
	for i := range recs {
		results[i].Err = recs[i].Check(s.options.MaxBody)
	}
	if s.spreadOf(queue) == nil {
		done, err := s.enqueueAt(ctx, now, shard{name: queue}, recs, results)
		if err == nil {
			return results, nil
		}
		other, ok := errors.AsType[*layoutError](err)
		if !ok {
			return nil, err
		}
		if err := s.learn(ctx, queue, other); err != nil {
			return nil, err
		}
		return results, s.enqueueSpread(ctx, now, queue, recs[done:], results[done:])
	}
	return results, s.enqueueSpread(ctx, now, queue, recs, results)
}

// enqueueAt stores records in one shard. It returns how many of the first it has results for.
func (s *Store) enqueueAt(ctx context.Context, now time.Time, at shard, recs []storage.Record, results []storage.EnqueueResult) (int, error) {
	done := 0
	for {
		n, err := s.enqueueSome(ctx, now, at, recs[done:], results[done:])
		if err != nil {
			return done, err
		}
		if done += n; done >= len(recs) {
			return done, nil
		}
	}
}

// enqueueSome stores as many records as one call should bring and returns how many that were.
// Results that have an error already are left out and get the instant only.
func (s *Store) enqueueSome(ctx context.Context, now time.Time, at shard, recs []storage.Record, results []storage.EnqueueResult) (int, error) {
	queue, _ := cutShard(at.name)
	args := make([]string, 2, 2+2*len(recs))
	args[0] = milli(now)
	terms := make([]byte, 0, termsSize*len(recs))
	sent := make([]int, 0, len(recs))
	n, size, keyed := 0, 0, false
	for n < len(recs) && size < sendBytes {
		if results[n].Err == nil {
			text := rest(&recs[n])
			size += len(text)
			terms = appendTerms(terms, &recs[n])
			args = append(args, recs[n].ID, text)
			sent = append(sent, n)
			keyed = keyed || recs[n].Key != ""
		}
		n++
	}
	if len(sent) > 0 {
		if err := s.enlist(ctx, queue); err != nil {
			return 0, err
		}
	}
	args[1] = string(terms)
	if keyed {
		s.whole.Store(at.name, struct{}{})
	}
	m, err := s.run(ctx, enqueueScript, at, args...)
	if errors.Is(err, storage.ErrFull) {
		for _, i := range sent {
			results[i].Err = storage.ErrFull
		}
		return n, nil
	}
	if err != nil {
		return 0, err
	}
	reply, err := m.ToArray()
	if err != nil || len(reply) < 2 {
		return 0, fmt.Errorf("redisstore: queue %q: %w", queue, &ScriptError{"enqueue", err})
	}
	ms, err := reply[0].AsInt64()
	if err != nil {
		return 0, fmt.Errorf("redisstore: queue %q: %w", queue, &ScriptError{"enqueue", err})
	}
	text, err := reply[1].ToString()
	if err == nil && text == "" && len(reply) == 3 { // all are stored
		seq, err := reply[2].AsInt64()
		if err != nil {
			return 0, fmt.Errorf("redisstore: queue %q: %w", queue, &ScriptError{"enqueue", err})
		}
		allStored(recs[:n], results[:n], instant(ms), seq)
		return n, nil
	}
	known := len(text) / resultSize
	if err != nil || len(text)%resultSize != 0 || known > len(sent) || known == 0 && len(sent) > 0 {
		return 0, fmt.Errorf("redisstore: queue %q: %w", queue, &ScriptError{"enqueue", err})
	}
	if known < len(sent) {
		n, sent = sent[known], sent[:known]
	}
	for i := range n {
		results[i].Now = instant(ms)
	}
	for k, i := range sent {
		r, one := &results[i], text[k*resultSize:]
		r.Outcome = storage.Outcome(one[0])
		if r.Seq = uintAt(one, 1, 6); r.Seq > 0 {
			r.Due = instant(uintAt(one, 7, 6))
		}
		if r.Outcome == storage.Refused {
			r.Err = refusedFor(uintAt(one, 7, 6), queue, &recs[i])
		}
	}
	for drop := reply[2:]; len(drop) >= 2; drop = drop[2:] {
		k, err := drop[0].AsInt64()
		ids, err2 := drop[1].ToString()
		if err := cmp.Or(err, err2); err != nil || k < 1 || int(k) > len(sent) {
			return 0, fmt.Errorf("redisstore: queue %q: %w", queue, &ScriptError{"enqueue", err})
		}
		results[sent[k-1]].Dropped = strings.Split(ids, "\x00")
	}
	return n, nil
}

// allStored fills in the results of records that are new, the first of which has a sequence.
func allStored(recs []storage.Record, results []storage.EnqueueResult, now time.Time, seq int64) {
	for i := range results {
		r := &results[i]
		r.Now = now
		if r.Err != nil {
			continue
		}
		r.Outcome, r.Seq = storage.Stored, seq
		if r.Due = now.Add(storage.Millis(recs[i].Delay)); !recs[i].Due.IsZero() {
			r.Due = instant(storage.DueMilli(recs[i].Due))
		}
		seq++
	}
}

// refusedFor is why enqueue.lua did not store a record.
func refusedFor(why int64, queue string, r *storage.Record) error {
	switch why {
	case 1:
		return fmt.Errorf("%w: queue %q has as many waiting messages as it accepts", storage.ErrFull, queue)
	case 2:
		return fmt.Errorf("%w: key %q has as many waiting messages as queue %q accepts for one", storage.ErrFull, r.Key, queue)
	case 3:
		return fmt.Errorf("%w: priority %d in an ordered queue", storage.ErrInvalid, r.Priority)
	default:
		return storage.ErrExpired
	}
}

// enlistEvery is how often a process that publishes lists a queue again, should a failover have lost
// the list but not the queue: they are in different slots.
const enlistEvery = time.Minute

// enlist puts a queue into the list of queues, before anything is stored in it.
func (s *Store) enlist(ctx context.Context, queue string) error {
	if at, ok := s.listed.Load(queue); ok {
		if at, ok := at.(time.Time); ok && time.Since(at) < enlistEvery {
			return nil
		}
	}
	if err := s.open(ctx); err != nil {
		return err
	}
	ctx, cancel := s.within(ctx)
	defer cancel()
	key := listKey(s.options.Namespace)
	_, err := again(ctx, true, func() (int64, error) {
		return s.client.Do(ctx, s.client.B().Zadd().Key(key).Nx().ScoreMember().ScoreMember(0, queue).Build()).AsInt64()
	})
	if err != nil {
		return s.wrap(ctx, err, "list", queue)
	}
	s.listed.Store(queue, time.Now())
	return nil
}
