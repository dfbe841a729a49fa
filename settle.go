// SPDX-License-Identifier: Apache-2.0

package bide

import (
	"context"
	"strings"
	"time"

	"github.com/bidemq/bide/storage"
)

// settle ends a lease together with others of its queue. ErrLeaseLost means that somebody else may
// have the message; ErrUnknown also that the lease may have been lost to an earlier try of this call.
func (c *Client) settle(ctx context.Context, s storage.Settlement, repeatFor time.Duration) error {
	s.Reason = storage.CutReason(strings.ToValidUTF8(s.Reason, "?"))
	queue, id := s.Receipt.Queue, s.Receipt.ID
	op := s.Verdict.String()
	if err := s.Check(); err != nil {
		return wrapID(err, op, queue, id)
	}
	a, err := c.settles.do(ctx, queue, s, 0, repeatFor)
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

// settleBatch is one call of the engine. It says for each settlement whether its lease was lost.
func (c *Client) settleBatch(ctx context.Context, _ string, ss []storage.Settlement) ([]bool, error) {
	lost, err := c.engine.Settle(ctx, time.Time{}, ss)
	if err != nil {
		return nil, err
	}
	is := make([]bool, len(ss))
	for _, r := range lost {
		for i := range ss {
			is[i] = is[i] || ss[i].Receipt == r
		}
	}
	return is, nil
}
