// SPDX-License-Identifier: Apache-2.0

package pebblestore

import (
	"context"
	"slices"
	"time"

	"github.com/bidemq/bide/storage"
)

// Extend implements [storage.Engine]. R5
func (s *Store) Extend(ctx context.Context, now time.Time, lease time.Duration, rs []storage.Receipt) ([]storage.Receipt, error) {
	err := check(storage.CheckLease(lease), storage.CheckBatch(len(rs)))
	for i := range rs {
		err = check(err, rs[i].Check())
	}
	if err != nil {
		return nil, wrap("extend", "", err)
	}
	return eachQueue(ctx, s, "extend", now, rs, func(r *storage.Receipt) storage.Receipt { return *r },
		func(c *call, r *storage.Receipt) (bool, error) { return c.extend(*r, millis(lease)), nil })
}

// Settle implements [storage.Engine]. R5 R7
func (s *Store) Settle(ctx context.Context, now time.Time, ss []storage.Settlement) ([]storage.Receipt, error) {
	err := storage.CheckBatch(len(ss))
	for i := range ss {
		err = check(err, ss[i].Check())
	}
	if err != nil {
		return nil, wrap("settle", "", err)
	}
	return eachQueue(ctx, s, "settle", now, ss, func(st *storage.Settlement) storage.Receipt { return st.Receipt },
		func(c *call, st *storage.Settlement) (bool, error) { return c.settle(st) })
}

// eachQueue runs do on each item, in one operation for the items of all queues, and returns the
// receipts for which it says false.
func eachQueue[T any](ctx context.Context, s *Store, op string, now time.Time, items []T, receipt func(*T) storage.Receipt, do func(*call, *T) (bool, error)) ([]storage.Receipt, error) {
	if err := storage.CheckNow(now); err != nil {
		return nil, wrap(op, "", err)
	}
	items = slices.Clone(items)
	var queues []string
	for i := range items {
		if q := receipt(&items[i]).Queue; !slices.Contains(queues, q) {
			queues = append(queues, q)
		}
	}
	var lost []storage.Receipt
	err := s.do(ctx, func(t *txn) error {
		for _, name := range queues {
			err := t.call(name, now, func(c *call) error {
				for i := range items {
					r := receipt(&items[i])
					if r.Queue != name {
						continue
					}
					held, err := do(c, &items[i])
					if err != nil {
						return err
					}
					if !held {
						lost = append(lost, r)
					}
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, wrap(op, "", err)
	}
	return lost, nil
}

// held returns the record of a receipt, nil if the lease is lost. R5
func (c *call) held(receipt storage.Receipt) *record {
	r := c.leases.byID[receipt.ID]
	if r == nil || r.token != receipt.Token || r.until <= c.now {
		return nil
	}
	return r
}

func (c *call) extend(receipt storage.Receipt, lease int64) bool {
	r := c.held(receipt)
	if r == nil {
		return false
	}
	c.mark()
	r.until = c.now + lease
	c.leases.moved(r)
	c.grantTo(r)
	return true
}

// settle ends a lease with a verdict. R5 R7
func (c *call) settle(s *storage.Settlement) (bool, error) {
	r := c.held(s.Receipt)
	if r == nil {
		return false, nil
	}
	reason := storage.CutReason(s.Reason)
	switch s.Verdict {
	case storage.Ack:
		if r.dedupFor > 0 && !r.successor {
			c.hold(r.id, c.now+r.dedupFor)
		}
		return true, c.ack(r)
	case storage.Retry:
		return true, c.again(r, outcome{c.now + millis(s.Delay), reason, c.now, &c.total.Retried, true})
	case storage.Release, storage.Return:
		due := r.due
		if s.Delay > 0 {
			due = c.now + millis(s.Delay)
		}
		attempts, deliveries := r.attempts, r.deliveries
		r.attempts-- // which leaves one, so that only deliveries can be spent
		if s.Verdict == storage.Return {
			r.deliveries--
			reason = ""
		}
		err := c.again(r, outcome{due, reason, c.now, &c.total.Released, false})
		if err != nil {
			r.attempts, r.deliveries = attempts, deliveries
		}
		return true, err
	case storage.Bury:
		return true, c.die(r, outcome{0, reason, c.now, &c.total.Died, true}, reason)
	case storage.Expire:
		return true, c.expire(r)
	}
	return true, nil
}

// ack ends the life of a record that was handled.
func (c *call) ack(r *record) error {
	if !c.config.Retains() {
		return c.finish(r, &c.total.Acked)
	}
	next, err := c.successor(r)
	if err != nil {
		return err
	}
	c.mark()
	c.total.Acked++
	c.total.Retained++
	c.unplace(r)
	c.conclude(r, storage.Done, c.now)
	c.start(next)
	return nil
}
