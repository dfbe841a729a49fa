// SPDX-License-Identifier: Apache-2.0

package bide

import (
	"context"
	"strings"
	"time"

	"github.com/bidemq/bide/storage"
)

// settle ends a lease together with others of its queue. ErrLeaseLost means that somebody else may
// have the message; ErrUnknown also that the lease may have been lost to an earlier try of this
// call.
func (c *Client) settle(ctx context.Context, s storage.Settlement, t terms) error {
	s.Reason = storage.CutReason(strings.ToValidUTF8(s.Reason, "?"))
	queue, id := s.Receipt.Queue, s.Receipt.ID
	op := s.Verdict.String()
	if err := s.Check(); err != nil {
		return wrapID(err, op, queue, id)
	}
	a, err := c.settles.do(ctx, queue, s, 0, t)
	switch {
	case err != nil:
		return fate(err, op, queue, id)
	case a.value && a.repeated:
		return &UnknownError{Queue: queue, ID: id, Err: ErrLeaseLost}
	case a.value:
		return wrapID(ErrLeaseLost, op, queue, id)
	}
	return nil
}

// settleBatch is one call of the engine. It says for each settlement whether its lease was lost. Of
// several that mean the same lease the first goes to the engine: whatever becomes of it, the lease
// is not there for the others.
func (c *Client) settleBatch(
	ctx context.Context,
	within time.Duration,
	queue string,
	ss []storage.Settlement,
) ([]bool, error) {
	is := make([]bool, len(ss))
	first := make(map[storage.Receipt]int, len(ss)) // index of the settlement that is sent
	sent := ss[:0]
	for i, s := range ss {
		if _, again := first[s.Receipt]; again {
			is[i] = true
			continue
		}
		first[s.Receipt] = i
		sent = append(sent, s)
	}
	err := bounded(ctx, within, func(ctx context.Context) error {
		lost, err := c.engine.Settle(ctx, time.Time{}, sent)
		for _, r := range lost {
			if i, ok := first[r]; ok {
				is[i] = true
			}
		}
		return err
	})
	if err != nil {
		c.noteCut(ctx, "settle", queue, err)
		return nil, err
	}
	return is, nil
}
