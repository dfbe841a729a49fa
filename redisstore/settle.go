// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"cmp"
	"context"
	"fmt"
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
	errs := []error{storage.CheckBatch(len(ss)), storage.CheckNow(now)}
	rs := make([]storage.Receipt, len(ss))
	for i := range ss {
		rs[i] = ss[i].Receipt
		errs = append(errs, ss[i].Check())
	}
	if err := cmp.Or(errs...); err != nil {
		return nil, err
	}
	return s.perQueue(ctx, settleScript, []string{milli(now)}, rs, func(i int) (string, string) {
		reason := ""
		if v := ss[i].Verdict; v == storage.Retry || v == storage.Release || v == storage.Bury {
			reason = storage.CutReason(ss[i].Reason)
		}
		b := make([]byte, 0, 14+len(reason))
		b = append(b, byte(ss[i].Verdict))
		b = appendUint(b, token(ss[i].Receipt.Token), 7)
		b = appendUint(b, length(ss[i].Delay), 6)
		return rs[i].ID, string(append(b, reason...))
	})
}

// token makes what no lease can have fit the scripts; it stays what no lease has.
func token(t int64) int64 {
	if t < 0 || t >= 1<<53 {
		return 0
	}
	return t
}

// perQueue sends two arguments a receipt, one call for each queue, and returns the receipts that
// the script says are lost, in their order.
func (s *Store) perQueue(ctx context.Context, sc *script, head []string, rs []storage.Receipt, each func(i int) (string, string)) ([]storage.Receipt, error) {
	if err := s.open(ctx); err != nil {
		return nil, err
	}
	var lost []storage.Receipt
	for first := range rs {
		queue := rs[first].Queue
		if seen(rs[:first], queue) {
			continue
		}
		args := append(make([]string, 0, len(head)+2*(len(rs)-first)), head...)
		for i := first; i < len(rs); i++ {
			if rs[i].Queue == queue {
				a, b := each(i)
				args = append(args, a, b)
			}
		}
		m, err := s.run(ctx, sc, queue, args...)
		if err != nil {
			return nil, err
		}
		text, err := m.ToString()
		if err != nil || len(text) != (len(args)-len(head))/2 {
			return nil, fmt.Errorf("redisstore: queue %q: %w", queue, &ScriptError{sc.name, err})
		}
		k := 0
		for i := first; i < len(rs); i++ {
			if rs[i].Queue == queue {
				if text[k] == 0 {
					lost = append(lost, rs[i])
				}
				k++
			}
		}
	}
	return lost, nil
}

func seen(rs []storage.Receipt, queue string) bool {
	for _, r := range rs {
		if r.Queue == queue {
			return true
		}
	}
	return false
}
