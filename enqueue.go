// SPDX-License-Identifier: Apache-2.0

package bide

import (
	"context"
	"errors"
	"time"

	"github.com/bidemq/bide/storage"
)

// Enqueue stores a message in a queue, which needs no making. A nil error means that it is there:
// it was stored, or its ID was there already (see [Result.Outcome]). [ErrUnknown] means that it may
// be there; enqueueing it again under Result.ID does no harm. Any other error means that it is not.
//
// While the engine is unavailable the call is repeated, as long as ctx and [ClientConfig.RepeatFor]
// allow. [ErrUnavailable] without ErrUnknown means that the message was not sent until then.
func (c *Client) Enqueue(ctx context.Context, queue string, m Message) (Result, error) {
	id := c.idOf(&m)
	rec, err := m.record()
	if err == nil {
		err = storage.CheckQueue(queue)
	}
	if err != nil {
		return c.answered(queue, &m, Result{ID: id, Err: wrapID(err, "enqueue", queue, id)})
	}
	rec.ID = id
	a, err := c.records.do(ctx, queue, rec, size(&rec), terms{repeatFor: c.config.RepeatFor, within: callPatience})
	if err != nil {
		return c.answered(queue, &m, Result{ID: id, Err: fate(err, "enqueue", queue, id)})
	}
	return c.answered(queue, &m, result(queue, id, a.value, m.ID == "" && a.repeated))
}

// idOf is the id that a message gets.
func (c *Client) idOf(m *Message) string {
	if m.ID == "" {
		return c.newID()
	}
	return m.ID
}

// store is one call of the engine.
func (c *Client) store(
	ctx context.Context,
	within time.Duration,
	queue string,
	recs []storage.Record,
) (results []storage.EnqueueResult, err error) {
	err = bounded(ctx, within, func(ctx context.Context) (err error) {
		results, err = c.engine.Enqueue(ctx, time.Time{}, queue, recs)
		return err
	})
	c.noteCut(ctx, "enqueue", queue, err)
	return results, err
}

// result translates an engine's answer. A duplicate of an id that nobody else has is the message of
// an earlier try.
func result(queue, id string, r storage.EnqueueResult, ours bool) Result {
	if ours && r.Outcome == storage.Duplicate {
		r.Outcome = storage.Stored
	}
	return Result{ID: id, Outcome: r.Outcome, Due: r.Due, Dropped: r.Dropped, Err: wrapID(r.Err, "enqueue", queue, id)}
}

// answered tells the hook and hands the result on.
func (c *Client) answered(queue string, m *Message, r Result) (Result, error) {
	if c.config.Hooks.OnEnqueue != nil {
		told := *m // a copy, so that messages need no memory of their own where nobody is told
		c.config.Hooks.OnEnqueue(queue, &told, r)
	}
	return r, r.Err
}

// fate turns an error of a call into what its caller gets to know.
func fate(err error, op, queue, id string) error {
	if unsure, ok := errors.AsType[unsureError](err); ok {
		return &UnknownError{Queue: queue, ID: id, Err: unsure.error}
	}
	return wrapID(err, op, queue, id)
}
