// SPDX-License-Identifier: Apache-2.0

package bide

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/bidemq/bide/storage"
)

// Enqueue stores a message in a queue, which needs no making. A nil error means that it is there: it
// was stored, or its ID was there already (see [Result.Outcome]). [ErrUnknown] means that it may be
// there; enqueueing it again under Result.ID does no harm. Any other error means that it is not.
//
// While the engine is unavailable the call is repeated, as long as ctx and
// [ClientConfig.RepeatFor] allow.
func (c *Client) Enqueue(ctx context.Context, queue string, m Message) (Result, error) {
	made := m.ID == ""
	if made {
		m.ID = c.newID()
	}
	rec, err := m.record()
	if err == nil {
		err = storage.CheckQueue(queue)
	}
	if err != nil {
		return c.answered(queue, &m, Result{ID: m.ID, Err: wrapID(err, "enqueue", queue, m.ID)})
	}
	a, err := c.records.do(ctx, queue, rec, size(&rec), c.config.RepeatFor)
	if err != nil {
		return c.answered(queue, &m, Result{ID: m.ID, Err: fate(err, "enqueue", queue, m.ID)})
	}
	return c.answered(queue, &m, result(queue, m.ID, a.value, made && a.repeated))
}

// EnqueueMany stores messages in order and returns a result for each, by index. The error is that of
// the first message that was not stored, with the count of those; one bad message does not keep the
// others from being stored. Messages of one call are not combined with those of others.
func (c *Client) EnqueueMany(ctx context.Context, queue string, ms []Message) ([]Result, error) {
	results := make([]Result, len(ms))
	errs := make([]error, len(ms))
	c.enqueueMany(ctx, queue, ms, errs, results)
	return results, firstError(results, queue)
}

// enqueueMany stores the messages that have no error yet.
func (c *Client) enqueueMany(ctx context.Context, queue string, ms []Message, errs []error, results []Result) {
	closed := c.records.isClosed()
	var batch []storage.Record
	var at []int // index of each record of the batch
	bytes := 0
	flush := func() {
		if len(batch) > 0 {
			c.storeMany(ctx, queue, ms, batch, at, results)
			batch, at, bytes = batch[:0], at[:0], 0
		}
	}
	for i := range ms {
		m := &ms[i]
		id := m.ID
		if id == "" {
			id = c.newID()
		}
		rec, err := m.record()
		switch {
		case errs[i] != nil:
			err = errs[i]
		case closed:
			err = ErrClosed
		}
		if err != nil {
			results[i], _ = c.answered(queue, m, Result{ID: id, Err: wrapID(err, "enqueue", queue, id)})
			continue
		}
		rec.ID = id
		n := size(&rec)
		if len(batch) == c.config.MaxBatch || len(batch) > 0 && bytes+n > c.config.MaxBatchBytes {
			flush()
		}
		batch, at, bytes = append(batch, rec), append(at, i), bytes+n
	}
	flush()
}

// storeMany stores one batch, repeating it while the engine is unavailable.
func (c *Client) storeMany(ctx context.Context, queue string, ms []Message, batch []storage.Record, at []int, results []Result) {
	began := time.Now()
	for tries := 1; ; tries++ {
		if err := ctx.Err(); err != nil && tries == 1 {
			c.refuseMany(queue, ms, batch, at, results, err)
			return
		}
		stored, err := c.store(ctx, queue, batch)
		if err == nil {
			for k, i := range at {
				results[i], _ = c.answered(queue, &ms[i], result(queue, batch[k].ID, stored[k], ms[i].ID == "" && tries > 1))
			}
			return
		}
		if errors.Is(err, ErrInvalid) && tries == 1 {
			c.refuseMany(queue, ms, batch, at, results, err)
			return
		}
		if !errors.Is(err, ErrUnavailable) || time.Since(began) >= c.config.RepeatFor || sleep(ctx, repeatAfter(tries)) != nil {
			c.refuseMany(queue, ms, batch, at, results, unsureError{err})
			return
		}
	}
}

func (c *Client) refuseMany(queue string, ms []Message, batch []storage.Record, at []int, results []Result, err error) {
	for k, i := range at {
		id := batch[k].ID
		results[i], _ = c.answered(queue, &ms[i], Result{ID: id, Err: fate(err, "enqueue", queue, id)})
	}
}

// store is one call of the engine.
func (c *Client) store(ctx context.Context, queue string, recs []storage.Record) ([]storage.EnqueueResult, error) {
	return c.engine.Enqueue(ctx, time.Time{}, queue, recs)
}

// result translates an engine's answer. A duplicate of an id that nobody else has is the message of
// an earlier try.
func result(queue, id string, r storage.EnqueueResult, ours bool) Result {
	if ours && r.Outcome == storage.Duplicate {
		r.Outcome = storage.Stored
	}
	return Result{ID: id, Outcome: r.Outcome, Due: r.Due, Err: wrapID(r.Err, "enqueue", queue, id)}
}

// answered tells the hook and hands the result on.
func (c *Client) answered(queue string, m *Message, r Result) (Result, error) {
	if c.config.Hooks.OnEnqueue != nil {
		c.config.Hooks.OnEnqueue(queue, m, r)
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

func firstError(results []Result, queue string) error {
	var first error
	failed := 0
	for i := range results {
		if err := results[i].Err; err != nil {
			failed++
			if first == nil {
				first = err
			}
		}
	}
	if failed > 1 {
		return fmt.Errorf("bide: enqueue %q: %d of %d messages failed, the first with: %w", queue, failed, len(results), first)
	}
	return first
}
