// SPDX-License-Identifier: Apache-2.0

package bide

import (
	"context"
	"fmt"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/bidemq/bide/storage"
)

// Waiting stands for storage.Delayed and storage.Ready together, wherever a method of Client takes
// a filter and says so: all that is not running yet, in the order of due times. No message has it
// as its state.
const Waiting storage.State = math.MaxUint8

// Messages lists the messages of one state, or all that are [Waiting], in the order of
// [storage.Record.At], at most f.Limit of them, 0 is all. The loop ends with the first error;
// ErrInvalid means that f.From is after f.To, among other things.
//
// What changes during the listing may be missing or listed twice. What only becomes due during it
// is listed once if the state asked for is Waiting.
func (c *Client) Messages(ctx context.Context, queue string, f storage.Filter) iter.Seq2[storage.Record, error] {
	return func(yield func(storage.Record, error) bool) {
		if err := checkFilter(f); err != nil {
			yield(storage.Record{}, wrap(err, "list", queue))
			return
		}
		l := &lister{client: c, queue: queue, left: limit(f.Limit), yield: yield}
		switch {
		case f.State != Waiting:
			l.all(ctx, f)
		case f.Desc:
			l.latestFirst(ctx, f)
		default:
			l.earliestFirst(ctx, f)
		}
	}
}

// checkFilter looks at what engines do not: they see one page of one state.
func checkFilter(f storage.Filter) error {
	if !f.From.IsZero() && f.From.After(f.To) && !f.To.IsZero() {
		return fmt.Errorf("%w: from %s is after to %s", ErrInvalid, f.From.Format(time.RFC3339Nano), f.To.Format(time.RFC3339Nano))
	}
	return nil
}

// lister hands records to a loop, page by page.
type lister struct {
	client *Client
	queue  string
	left   limit
	yield  func(storage.Record, error) bool
}

// all lists one state. It returns the position of the last record, f.After if there was none, and
// whether the loop goes on.
func (l *lister) all(ctx context.Context, f storage.Filter) (storage.Position, bool) {
	for {
		p, ok := l.fetch(ctx, f)
		if !ok || !l.hand(p.Records) {
			return f.After, false
		}
		f.After = reached(p, f.After)
		if !p.More {
			return f.After, true
		}
	}
}

// earliestFirst lists what is ready and then what is delayed. A message may become ready between
// the two, so each page of the delayed is preceded by what was ready before it when it was fetched.
func (l *lister) earliestFirst(ctx context.Context, f storage.Filter) {
	ready, delayed := f, f
	ready.State, delayed.State = storage.Ready, storage.Delayed
	for {
		p, ok := l.fetch(ctx, delayed)
		if !ok {
			return
		}
		ready.To = f.To
		if len(p.Records) > 0 {
			ready.To = p.Records[0].At()
		}
		last, ok := l.all(ctx, ready)
		if !ok || !l.hand(p.Records) || !p.More {
			return
		}
		delayed.After = reached(p, delayed.After)
		if delayed.After.At.Before(last.At) { // an empty page
			delayed.After = last
		}
		ready.After = delayed.After
	}
}

// latestFirst lists what is delayed and then what is ready, also what has become so meanwhile.
func (l *lister) latestFirst(ctx context.Context, f storage.Filter) {
	f.State = storage.Delayed
	last, ok := l.all(ctx, f)
	if !ok {
		return
	}
	f.State, f.After = storage.Ready, last
	l.all(ctx, f)
}

// reached is where a listing goes on after a page.
func reached(p storage.Page, after storage.Position) storage.Position {
	if len(p.Records) > 0 || p.More {
		return p.Last
	}
	return after
}

func (l *lister) fetch(ctx context.Context, f storage.Filter) (storage.Page, bool) {
	f.Limit = l.left.step()
	p, err := l.client.engine.List(ctx, time.Time{}, l.queue, f)
	if err != nil {
		l.yield(storage.Record{}, wrap(err, "list", l.queue))
		return p, false
	}
	return p, true
}

// hand says whether the loop goes on.
func (l *lister) hand(records []storage.Record) bool {
	for _, r := range records {
		if !l.yield(r, nil) || l.left.spend(1) {
			return false
		}
	}
	return true
}

// Count says how many messages a filter selects, at most f.Limit, 0 is no bound. All of a state, or
// all that are [Waiting], are counted at once; a range, a key or an id takes a listing, whose cost
// grows with the number of messages found.
func (c *Client) Count(ctx context.Context, queue string, f storage.Filter) (int64, error) {
	if whole := (storage.Filter{State: f.State, Desc: f.Desc}); f == whole {
		s, err := c.Stats(ctx, queue)
		switch f.State {
		case storage.Delayed:
			return s.Delayed, err
		case storage.Ready:
			return s.Ready, err
		case Waiting:
			return s.Delayed + s.Ready, err
		case storage.Leased:
			return s.Leased, err
		case storage.Dead:
			return s.Dead, err
		case storage.Done:
			return s.Done, err
		}
	}
	var n int64
	for _, err := range c.Messages(ctx, queue, f) {
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// Last returns the last n messages that Messages would list, in its order: the end of a queue that
// is used as a log. It costs what n messages cost, however many there are. ErrInvalid means that n
// is below 1, or that f.Limit is set.
func (c *Client) Last(ctx context.Context, queue string, f storage.Filter, n int) ([]storage.Record, error) {
	if n < 1 || f.Limit != 0 {
		err := fmt.Errorf("%w: the last %d with a limit of %d: n is at least 1, and the only limit", ErrInvalid, n, f.Limit)
		return nil, wrap(err, "list", queue)
	}
	f.Desc, f.Limit = !f.Desc, n
	var found []storage.Record
	for r, err := range c.Messages(ctx, queue, f) {
		if err != nil {
			return nil, err
		}
		found = append(found, r)
	}
	slices.Reverse(found)
	return found, nil
}
