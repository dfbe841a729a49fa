// SPDX-License-Identifier: Apache-2.0

package bide

import (
	"context"
	"fmt"
	"time"

	"github.com/bidemq/bide/storage"
)

// Purge removes messages of one state that no handler has, or all that are [Waiting]: at most
// f.Limit of them, in the order of the filter, 0 is all. The count is right beside an error too,
// but for a step whose answer was lost.
func (c *Client) Purge(ctx context.Context, queue string, f storage.Filter) (storage.Batch, error) {
	if err := checkFilter(f); err != nil {
		return storage.Batch{}, wrap(err, "purge", queue)
	}
	if f.State != Waiting {
		return c.steps(ctx, steps{op: "purge", call: c.engine.Purge, queue: queue, most: page}, f)
	}
	// What becomes ready while the delayed are looked through is caught by the pass behind it.
	states := []storage.State{storage.Ready, storage.Delayed, storage.Ready}
	if f.Desc {
		states = states[1:]
	}
	var sum storage.Batch
	left := f
	for _, left.State = range states {
		b, err := c.Purge(ctx, queue, left)
		sum.Count += b.Count
		sum.More, sum.Last = b.More, b.Last
		if err != nil {
			return sum, err
		}
		if f.Limit > 0 {
			if left.Limit = f.Limit - sum.Count; left.Limit <= 0 {
				return sum, nil
			}
		}
	}
	return sum, nil
}

// PurgeRanks removes the messages of the ranks first to last, both included, among those that a
// filter selects, in its order; rank 0 is the first, and with f.Desc the latest. Ranks behind the
// end are nobody's. ErrInvalid means that first is negative or behind last, or that f.Limit is set.
//
// To remove the first n, or with f.Desc the last n, Purge with a Limit of n is enough.
//
// It walks over the messages before first and then removes as many as asked for of those that
// follow. What is enqueued, handed out, rescheduled or removed in front of them during that moves
// the ranks; it never removes more than last-first+1 messages, and none that was in front of them
// and stayed there.
func (c *Client) PurgeRanks(ctx context.Context, queue string, f storage.Filter, first, last int) (storage.Batch, error) {
	if err := checkRanks(f, first, last); err != nil {
		return storage.Batch{}, wrap(err, "purge", queue)
	}
	if first > 0 {
		before, skipped := f, 0
		before.Limit = first
		for r, err := range c.Messages(ctx, queue, before) {
			if err != nil {
				return storage.Batch{}, err
			}
			skipped++
			f.After = storage.Position{At: r.At(), Seq: r.Seq}
		}
		if skipped < first {
			return storage.Batch{}, nil
		}
	}
	f.Limit = last - first + 1
	return c.Purge(ctx, queue, f)
}

func checkRanks(f storage.Filter, first, last int) error {
	switch {
	case f.State == storage.Leased:
		return fmt.Errorf("%w: running messages are canceled by id", ErrInvalid)
	case f.Limit != 0:
		return fmt.Errorf("%w: both ranks and a limit of %d are set", ErrInvalid, f.Limit)
	case first < 0:
		return fmt.Errorf("%w: rank %d is negative", ErrInvalid, first)
	case last < first:
		return fmt.Errorf("%w: rank %d is behind rank %d", ErrInvalid, first, last)
	case last-first+1 <= 0: // more than there are numbers for
		return fmt.Errorf("%w: rank %d is too large", ErrInvalid, last)
	}
	return checkFilter(f)
}

// steps is work of an engine that is done in bounded calls.
type steps struct {
	op    string
	call  func(context.Context, time.Time, string, storage.Filter) (storage.Batch, error)
	queue string
	most  int                 // messages of a call
	pace  *pace               // nil is none
	told  func(storage.Batch) // of the sum after each call, nil is nobody
}

// steps makes calls until nothing that f selects is left. Last of the sum is where it stands, also
// beside an error.
func (c *Client) steps(ctx context.Context, s steps, f storage.Filter) (storage.Batch, error) {
	sum := storage.Batch{Last: f.After}
	left := limit(f.Limit)
	for {
		f.Limit = min(left.step(), s.most)
		began := time.Now()
		b, err := s.call(ctx, time.Time{}, s.queue, f)
		if err != nil {
			sum.More = true
			return sum, wrap(err, s.op, s.queue)
		}
		sum.Count += b.Count
		sum.Skipped += b.Skipped
		sum.More, sum.Last = b.More, b.Last
		if s.told != nil {
			s.told(sum)
		}
		if left.spend(b.Count) || !b.More {
			return sum, nil
		}
		f.After = b.Last
		if err := s.pace.wait(ctx, began, b.Count); err != nil {
			return sum, err
		}
	}
}
