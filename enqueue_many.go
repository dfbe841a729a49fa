// SPDX-License-Identifier: Apache-2.0

package bide

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/bidemq/bide/storage"
)

// EnqueueMany stores messages in order and returns a result for each, by index. The error is that
// of the first message that was not stored, with the count of those; one bad message does not keep
// the others from being stored. Messages of one call are not combined with those of others.
//
// They go in as many calls as they need. Each is repeated like that of an Enqueue while the engine
// is unavailable; when one is given up, those behind it are not sent.
func (c *Client) EnqueueMany(ctx context.Context, queue string, ms []Message) ([]Result, error) {
	results := make([]Result, len(ms))
	errs := make([]error, len(ms))
	c.enqueueMany(ctx, queue, ms, errs, results)
	return results, firstError(results, queue)
}

// enqueueMany stores the messages that have no error yet.
func (c *Client) enqueueMany(ctx context.Context, queue string, ms []Message, errs []error, results []Result) {
	b := bulk{Client: c, queue: queue, ms: ms, results: results}
	n := min(len(ms), c.config.MaxBatch)
	b.batch, b.at = make([]storage.Record, 0, n), make([]int, 0, n)
	if c.records.enter() {
		defer c.records.exit()
	} else {
		b.halt = ErrClosed
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.records.ctx, cancel)() // Close has waited long enough
	for i := range ms {
		b.add(ctx, i, errs[i])
	}
	b.flush(ctx)
}

// bulk is one EnqueueMany.
type bulk struct {
	*Client
	queue   string
	ms      []Message
	results []Result

	batch []storage.Record // that is not sent
	at    []int            // index of each record of the batch
	bytes int
	halt  error // why nothing more is sent
}

// add puts a message into the batch, unless it has an error already.
func (b *bulk) add(ctx context.Context, i int, err error) {
	m := &b.ms[i]
	id := b.idOf(m)
	rec, bad := m.record()
	if err == nil {
		err = bad
	}
	if err != nil {
		b.refuse(i, id, err)
		return
	}
	rec.ID = id
	n := size(&rec)
	if len(b.batch) == b.config.MaxBatch || len(b.batch) > 0 && b.bytes+n > b.config.MaxBatchBytes {
		b.flush(ctx)
	}
	b.batch, b.at, b.bytes = append(b.batch, rec), append(b.at, i), b.bytes+n
}

// flush stores the batch, repeating that while the engine is unavailable.
func (b *bulk) flush(ctx context.Context) {
	stored, tries, err := b.send(ctx)
	for k, i := range b.at {
		id := b.batch[k].ID
		if err != nil {
			b.refuse(i, id, err)
			continue
		}
		b.results[i], _ = b.answered(b.queue, &b.ms[i], result(b.queue, id, stored[k], b.ms[i].ID == "" && tries > 1))
	}
	b.batch, b.at, b.bytes = b.batch[:0], b.at[:0], 0
}

func (b *bulk) send(ctx context.Context) (stored []storage.EnqueueResult, tries int, err error) {
	if len(b.batch) == 0 {
		return nil, 0, nil
	}
	if err := b.halted(ctx); err != nil {
		return nil, 0, err
	}
	began := time.Now()
	for tries = 1; ; tries++ {
		stored, err = b.store(ctx, callPatience, b.queue, b.batch)
		if err == nil || errors.Is(err, ErrInvalid) && tries == 1 {
			return stored, tries, err
		}
		left := b.config.RepeatFor - time.Since(began)
		switch {
		case !errors.Is(err, ErrUnavailable):
			return nil, tries, unsureError{err}
		case left <= 0:
			b.halt = err
			return nil, tries, unsureError{err}
		case sleep(ctx, min(left, repeatAfter(tries))) != nil:
			return nil, tries, unsureError{err}
		}
	}
}

// halted says why nothing more is to be sent, nil if there is no reason.
func (b *bulk) halted(ctx context.Context) error {
	switch {
	case b.halt != nil:
		return b.halt
	case b.records.ctx.Err() != nil:
		return ErrClosed
	}
	return ctx.Err()
}

func (b *bulk) refuse(i int, id string, err error) {
	b.results[i], _ = b.answered(b.queue, &b.ms[i], Result{ID: id, Err: fate(err, "enqueue", b.queue, id)})
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
