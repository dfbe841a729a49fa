// SPDX-License-Identifier: Apache-2.0

package bide

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/bidemq/bide/storage"
)

// CancelMode widens what Cancel removes.
type CancelMode uint8

// Running cancels a message that a handler has at the moment, too: the handler's context ends with
// [ErrLeaseLost] when the consumer next keeps the lease, and what it returns is ignored.
const Running CancelMode = 1

// Cancel removes a message that waits. ErrNotFound means that nothing has the id; ErrConflict that
// a handler has the message (unless the mode is [Running]), or that it is dead.
func (c *Client) Cancel(ctx context.Context, queue, id string, mode ...CancelMode) error {
	running := false
	for _, m := range mode {
		running = running || m == Running
	}
	return wrapID(c.engine.Cancel(ctx, time.Time{}, queue, id, running), "cancel", queue, id)
}

// Reschedule changes when a waiting message is due, by [In] or [At]; every other option is
// ErrInvalid. ErrNotFound means that nothing has the id, ErrConflict that a handler has the message
// or that it is dead.
func (c *Client) Reschedule(ctx context.Context, queue, id string, when Option) error {
	e, err := reschedule(when)
	if err == nil {
		_, err = c.engine.Edit(ctx, time.Time{}, queue, id, e)
	}
	return wrapID(err, "reschedule", queue, id)
}

func reschedule(when Option) (storage.Edit, error) {
	if when == nil {
		return storage.Edit{}, errNilOption()
	}
	m := Message{Delay: untimed}
	m.edit(when)
	more := m.ID != "" || m.Key != "" || m.Priority != 0 || m.Body != nil || m.Headers != nil ||
		m.ExpireIn != 0 || m.MaxAttempts != 0 || m.DedupFor != 0 || m.OnLive != 0
	switch {
	case more || m.Delay == untimed:
		return storage.Edit{}, fmt.Errorf("%w: only In, and At a time that is not zero, reschedule", ErrInvalid)
	case m.Due.IsZero():
		return storage.Edit{Delay: &m.Delay}, nil
	case m.Delay == 0:
		return storage.Edit{Due: &m.Due}, nil
	}
	return storage.Edit{}, fmt.Errorf("%w: both a due time and a delay are set", ErrInvalid)
}

// Edit changes a waiting message in place and returns it as it is then. Its place among those due
// at the same time and its attempts stay. ErrNotFound, ErrConflict (a handler has it, or it is
// dead), ErrExpired (it would be past its expiry), ErrInvalid and ErrTooLarge change nothing.
func (c *Client) Edit(ctx context.Context, queue, id string, e storage.Edit) (storage.Record, error) {
	r, err := c.engine.Edit(ctx, time.Time{}, queue, id, e)
	return r, wrapID(err, "edit", queue, id)
}

// Get returns the message that an id means: the one that waits or runs, else the latest finished
// one, or ErrNotFound.
func (c *Client) Get(ctx context.Context, queue, id string) (storage.Record, error) {
	r, err := c.engine.Get(ctx, time.Time{}, queue, id)
	return r, wrapID(err, "get", queue, id)
}

// Queues lists the names of all queues, in order. The loop ends with the first error.
func (c *Client) Queues(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		after := ""
		for {
			names, err := c.engine.Queues(ctx, after, page)
			if err != nil {
				if !isContext(err) {
					err = fmt.Errorf("bide: list queues: %w", err)
				}
				yield("", err)
				return
			}
			for _, name := range names {
				if !yield(name, nil) {
					return
				}
				after = name
			}
			if len(names) < page {
				return
			}
		}
	}
}

// Stats counts a queue. An unknown queue has zero of everything.
func (c *Client) Stats(ctx context.Context, queue string) (storage.Stats, error) {
	s, err := c.engine.Stats(ctx, time.Time{}, queue)
	return s, wrap(err, "stats of", queue)
}

// Pause lets a queue accept messages and deliver none, for everybody at once. Running handlers go
// on.
func (c *Client) Pause(ctx context.Context, queue string) error { return c.setPaused(ctx, queue, true) }

// Resume ends a pause.
func (c *Client) Resume(ctx context.Context, queue string) error {
	return c.setPaused(ctx, queue, false)
}

func (c *Client) setPaused(ctx context.Context, queue string, paused bool) error {
	_, err := c.Configure(ctx, queue, storage.ConfigEdit{Paused: &paused})
	return err
}

// Configure changes the fields that are set, for everybody at once, and returns the whole
// configuration. An empty edit reads it.
func (c *Client) Configure(ctx context.Context, queue string, e storage.ConfigEdit) (storage.QueueConfig, error) {
	q, err := c.engine.Configure(ctx, queue, e)
	return q, wrap(err, "configure", queue)
}

// Repair compares the structures of a queue with its messages and mends them unless it is a dry
// run, step by step until it is through. r.Limit bounds a step, 0 is 200. The fixes are those of
// all steps, also beside an error.
func (c *Client) Repair(ctx context.Context, queue string, r storage.Repair) (storage.Repaired, error) {
	var sum storage.Repaired
	if r.Limit == 0 {
		r.Limit = page
	}
	for {
		step, err := c.engine.Repair(ctx, time.Time{}, queue, r)
		if err != nil {
			return sum, wrap(err, "repair", queue)
		}
		sum.Checked += step.Checked
		sum.Fixes = append(sum.Fixes, step.Fixes...)
		if step.Next == "" {
			return sum, nil
		}
		r.After = step.Next
	}
}
