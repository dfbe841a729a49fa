// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/bidemq/bide/storage"
)

// Extend implements [storage.Engine]. R5
func (s *Store) Extend(ctx context.Context, now time.Time, lease time.Duration, rs []storage.Receipt) ([]storage.Receipt, error) {
	errs := []error{storage.CheckLease(lease), storage.CheckBatch(len(rs)), storage.CheckNow(now)}
	for _, r := range rs {
		errs = append(errs, r.Check())
	}
	if err := cmp.Or(errs...); err != nil {
		return nil, err
	}
	return s.perQueue(ctx, extendScript, []string{milli(now), decimal(length(lease))}, rs,
		func(i int) (string, string) { return rs[i].ID, decimal(token(rs[i].Token)) })
}

// Settle implements [storage.Engine]. R5 R7
func (s *Store) Settle(ctx context.Context, now time.Time, ss []storage.Settlement) ([]storage.Receipt, error) {
	err := cmp.Or(storage.CheckBatch(len(ss)), storage.CheckNow(now))
	rs := make([]storage.Receipt, len(ss))
	for i := range ss {
		rs[i] = ss[i].Receipt
		err = cmp.Or(err, ss[i].Check())
	}
	if err != nil {
		return nil, err
	}
	words := settleWords(ss)
	return s.perQueue(ctx, settleScript, []string{milli(now)}, rs, func(i int) (string, string) {
		return rs[i].ID, words[i]
	})
}

// settleWords are what settle.lua is told about each settlement, in one piece of memory.
func settleWords(ss []storage.Settlement) []string {
	const size = 14 // without a reason
	words := make([]string, len(ss))
	var all strings.Builder
	all.Grow(size * len(ss))
	for i := range ss {
		b := append(make([]byte, 0, size), byte(ss[i].Verdict))
		b = appendUint(b, token(ss[i].Receipt.Token), 7)
		b = appendUint(b, length(ss[i].Delay), 6)
		begin := all.Len()
		all.Write(b)
		if v := ss[i].Verdict; v == storage.Retry || v == storage.Release || v == storage.Bury {
			all.WriteString(storage.CutReason(ss[i].Reason))
		}
		words[i] = all.String()[begin:]
	}
	return words
}

// token makes what no lease can have fit the scripts; it stays what no lease has.
func token(t int64) int64 {
	if t < 0 || t >= 1<<53 {
		return 0
	}
	return t
}

// answers sends two arguments for each of some receipts and returns a byte for each of the first.
func (s *Store) answers(ctx context.Context, sc *script, at shard, head []string, which []int, each func(i int) (string, string)) (string, error) {
	args := append(make([]string, 0, len(head)+2*len(which)), head...)
	for _, i := range which {
		a, b := each(i)
		args = append(args, a, b)
	}
	m, err := s.run(ctx, sc, at, args...)
	if err != nil {
		return "", err
	}
	text, err := m.ToString()
	if err == nil && text == "" { // all are settled
		return strings.Repeat("\x01", len(which)), nil
	}
	if err != nil || len(text) == 0 || len(text) > len(which) {
		return "", fmt.Errorf("redisstore: queue %q: %w", at.name, &ScriptError{sc.name, err})
	}
	return text, nil
}

// settleAt sends two arguments for each of some receipts to one shard, and returns those that are lost. An error says
// nothing about the first done of them, which were answered before.
func (s *Store) settleAt(ctx context.Context, sc *script, at shard, head []string, which []int, each func(i int) (string, string)) (lost []int, done int, err error) {
	for done < len(which) {
		left := which[done:]
		answers, err := s.answers(ctx, sc, at, head, left, each)
		if err != nil {
			return lost, done, err
		}
		for n := range len(answers) {
			if answers[n] == 0 {
				lost = append(lost, left[n])
			}
		}
		done += len(answers)
	}
	return lost, done, nil
}

// perQueue sends two arguments a receipt, one call for each queue and all of them at once, and
// returns the receipts that the script says are lost, queue by queue.
func (s *Store) perQueue(ctx context.Context, sc *script, head []string, rs []storage.Receipt, each func(i int) (string, string)) ([]storage.Receipt, error) {
	if err := s.open(ctx); err != nil {
		return nil, err
	}
	var queues []string
	members := map[string][]int{}
	for i, r := range rs {
		if members[r.Queue] == nil {
			queues = append(queues, r.Queue)
		}
		members[r.Queue] = append(members[r.Queue], i)
	}
	lost := make([][]storage.Receipt, len(queues))
	errs := make([]error, len(queues))
	settle := func(k int) {
		queue := queues[k]
		var left []int
		if s.spreadOf(queue) != nil {
			left, errs[k] = s.settleSpread(ctx, sc, queue, head, rs, members[queue], each)
		} else {
			var done int
			left, done, errs[k] = s.settleAt(ctx, sc, shard{name: queue}, head, members[queue], each)
			if other, ok := errors.AsType[*layoutError](errs[k]); ok {
				if errs[k] = s.learn(ctx, queue, other); errs[k] == nil {
					var more []int
					more, errs[k] = s.settleSpread(ctx, sc, queue, head, rs, members[queue][done:], each)
					left = append(left, more...)
				}
			}
		}
		for _, i := range left {
			lost[k] = append(lost[k], rs[i])
		}
	}
	var others sync.WaitGroup
	for k := 1; k < len(queues); k++ {
		others.Go(func() { settle(k) })
	}
	if len(queues) > 0 {
		settle(0)
	}
	others.Wait()
	if err := cmp.Or(errs...); err != nil {
		return nil, err
	}
	return slices.Concat(lost...), nil
}
