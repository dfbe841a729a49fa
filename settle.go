// SPDX-License-Identifier: Apache-2.0

package bide

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bidemq/bide/storage"
)

// settle ends a lease together with others of its queue. ErrLeaseLost means that somebody else may
// have the message; ErrUnknown also that the lease may have been lost to an earlier try of this
// call.
func (c *Client) settle(ctx context.Context, s storage.Settlement, t terms) error {
	if err := fit(&s); err != nil {
		return wrapID(err, s.Verdict.String(), s.Receipt.Queue, s.Receipt.ID)
	}
	a, err := c.settles.do(ctx, c.lane(s.Receipt), s, 0, t)
	return settled(&s, a, err)
}

// settleLater is settle for a caller that does not wait, see batcher.submit. What the answer means says
// settled.
func (c *Client) settleLater(ctx context.Context, s storage.Settlement, t terms, done func(answer[bool])) {
	if err := fit(&s); err != nil {
		done(answer[bool]{err: err})
		return
	}
	c.settles.submit(ctx, c.lane(s.Receipt), s, t, done)
}

// lane is what goes together: the leases of a queue, or of a shard of it.
func (c *Client) lane(r storage.Receipt) string {
	if c.sharder == nil {
		return r.Queue
	}
	shard := c.sharder.Shard(r)
	if shard == 0 {
		return r.Queue
	}
	return r.Queue + "#" + strconv.Itoa(shard)
}

// fit makes the reason of a settlement what engines take, and checks the rest.
func fit(s *storage.Settlement) error {
	s.Reason = storage.CutReason(strings.ToValidUTF8(s.Reason, "?"))
	return s.Check()
}

// settled is what the answer to a settlement means: true for a lease that was lost.
func settled(s *storage.Settlement, a answer[bool], err error) error {
	queue, id := s.Receipt.Queue, s.Receipt.ID
	switch {
	case err != nil:
		return fate(err, s.Verdict.String(), queue, id)
	case a.value && a.repeated:
		return &UnknownError{Queue: queue, ID: id, Err: ErrLeaseLost}
	case a.value:
		return wrapID(ErrLeaseLost, s.Verdict.String(), queue, id)
	}
	return nil
}

// settleTogether ends leases of one queue in order, in one call, which is repeated as that of a
// settlement is. It returns an error for each.
func (c *Client) settleTogether(ctx context.Context, queue string, ss []storage.Settlement, t terms) []error {
	errs := make([]error, len(ss))
	if !c.settles.enter() {
		for i := range ss {
			errs[i] = wrapID(ErrClosed, ss[i].Verdict.String(), queue, ss[i].Receipt.ID)
		}
		return errs
	}
	defer c.settles.exit()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.settles.ctx, cancel)() // Close has waited long enough
	for i := range ss {
		ss[i].Reason = storage.CutReason(strings.ToValidUTF8(ss[i].Reason, "?"))
	}
	began := time.Now()
	for tries := 1; ; tries++ {
		lost, err := c.settleBatch(ctx, t.within, queue, ss)
		left := t.repeatFor - time.Since(began)
		if errors.Is(err, ErrUnavailable) && left > 0 && sleep(ctx, min(left, repeatAfter(tries))) == nil {
			continue
		}
		for i := range ss {
			op, id := ss[i].Verdict.String(), ss[i].Receipt.ID
			switch {
			case errors.Is(err, ErrInvalid) && tries == 1:
				errs[i] = wrapID(err, op, queue, id)
			case err != nil:
				errs[i] = fate(unsureError{err}, op, queue, id)
			case lost[i] && tries > 1:
				errs[i] = &UnknownError{Queue: queue, ID: id, Err: ErrLeaseLost}
			case lost[i]:
				errs[i] = wrapID(ErrLeaseLost, op, queue, id)
			}
		}
		return errs
	}
}

// settleBatch is one call of the engine. It says for each settlement whether its lease was lost. Of
// several that mean the same lease the engine reports all but the first, or all.
func (c *Client) settleBatch(
	ctx context.Context,
	within time.Duration,
	_ string, // its lane
	ss []storage.Settlement,
) ([]bool, error) {
	var lost []storage.Receipt
	err := bounded(ctx, within, func(ctx context.Context) (err error) {
		lost, err = c.engine.Settle(ctx, time.Time{}, ss)
		return err
	})
	if err != nil {
		c.noteCut(ctx, "settle", ss[0].Receipt.Queue, err)
		return nil, err
	}
	is := make([]bool, len(ss))
	if len(lost) == 0 {
		return is, nil
	}
	times := make(map[storage.Receipt]int, len(lost))
	for _, r := range lost {
		times[r]++
	}
	for i, s := range slices.Backward(ss) {
		if times[s.Receipt] > 0 {
			times[s.Receipt]--
			is[i] = true
		}
	}
	return is, nil
}
