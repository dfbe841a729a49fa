// SPDX-License-Identifier: Apache-2.0

package bide

import (
	"context"
	"fmt"
	"time"

	"github.com/bidemq/bide/storage"
)

// RedriveConfig of a redrive. The zero value redrives as fast as the engine takes it.
type RedriveConfig struct {
	// PerSecond bounds how many messages become ready in a second, so that what failed together
	// does not come back together; 0 is no bound, and below one a day is ErrInvalid. They come in
	// up to ten even steps a second, each of 200 at most; time lost by a slow engine is not caught
	// up.
	PerSecond float64
	// Progress is called with the sums so far after every step, nil is nobody. The redrive waits
	// for it to return.
	Progress func(storage.Batch)
}

// Redrive makes dead messages ready again, with no attempts spent, at most f.Limit of them, 0 is
// all; f.State may be left out. A message whose id is waiting or running is skipped and counted; if
// f.ID names it, that is ErrConflict. The counts are right beside an error too, but for a step
// whose answer was lost.
func (c *Client) Redrive(ctx context.Context, queue string, f storage.Filter) (storage.Batch, error) {
	return c.RedriveWith(ctx, queue, f, RedriveConfig{})
}

// RedriveWith is Redrive with a pace. It ends when ctx does, with ctx's error and what was done by
// then. What it has not come to is still dead: the same call goes on with it, and looks again at
// those it skipped unless f.After is set to the Last of the batch returned. Messages that die after
// its beginning are left out, so that one which fails at once does not go round for ever.
func (c *Client) RedriveWith(ctx context.Context, queue string, f storage.Filter, config RedriveConfig) (storage.Batch, error) {
	if f.State == 0 {
		f.State = storage.Dead
	}
	s := steps{op: "redrive", call: c.engine.Redrive, queue: queue, most: page, told: config.Progress}
	err := checkFilter(f)
	if err == nil && config.PerSecond != 0 {
		s.pace, err = newPace(config.PerSecond)
		s.most = min(page, max(1, int(config.PerSecond/10)))
	}
	if err != nil {
		return storage.Batch{}, wrap(err, "redrive", queue)
	}
	if f.ID == "" {
		if f, err = c.deadSoFar(ctx, queue, f); err != nil {
			return storage.Batch{More: true, Last: f.After}, err
		}
	}
	return c.steps(ctx, s, f)
}

// deadSoFar leaves out what dies from now on, by the engine's clock.
func (c *Client) deadSoFar(ctx context.Context, queue string, f storage.Filter) (storage.Filter, error) {
	st, err := c.Stats(ctx, queue)
	if end := st.Now.Add(time.Millisecond); err == nil && (f.To.IsZero() || f.To.After(end)) {
		f.To = end
	}
	return f, err
}

// pace spreads work over time.
type pace struct {
	every time.Duration // for one piece of work
	next  time.Time     // when the next may begin
}

// newPace refuses what is no rate: negative ones, NaN, infinity, and less than one a day.
func newPace(perSecond float64) (*pace, error) {
	const least = 1.0 / (24 * 60 * 60)
	if !(perSecond >= least && perSecond <= 1e9) {
		return nil, fmt.Errorf("%w: a rate of %v a second is not between one a day and 1e9 a second", ErrInvalid, perSecond)
	}
	return &pace{every: time.Duration(float64(time.Second) / perSecond)}, nil
}

// wait returns when n pieces of work that were begun at an instant have had their time. A nil pace
// waits only for nothing.
func (p *pace) wait(ctx context.Context, began time.Time, n int) error {
	if p == nil {
		return nil
	}
	if p.next.Before(began) { // what is late is not caught up
		p.next = began
	}
	p.next = p.next.Add(time.Duration(n) * p.every)
	t := time.NewTimer(time.Until(p.next))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
