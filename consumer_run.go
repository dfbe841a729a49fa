// SPDX-License-Identifier: Apache-2.0

package bide

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// run is one run of a consumer.
type run struct {
	*Consumer
	ctx     context.Context // the caller's
	keeper  *keeper
	tellers *tellers
	sources []*source
	began   time.Time
	wake    chan struct{} // something changed that the loop looks at
	contest []*source     // of dispatch, kept for its memory

	claims      context.Context // outlives ctx until the drain is over
	endClaims   context.CancelFunc
	handlers    context.Context // what handlers' contexts are made of
	endHandlers context.CancelCauseFunc
	settles     context.Context
	endSettles  context.CancelFunc

	mu           sync.Mutex    // guards the sources and what follows
	reserved     int           // handlers promised to claims under way
	claiming     int           // claims under way
	running      int           // handlers, stuck ones included; one has a message, or a batch of them
	settling     int           // units that are being settled
	ahead        []*unit       // claimed, and no handler has begun them; the first was claimed first
	pace         tempo         // of the handlers
	hungry       bool          // a source could be claimed from if there were a place
	stuck        int           // handlers that ignore the end of their context
	waitFailures int           // Waits that failed since the last one that worked
	floor        float64       // charge at which a source begins that had nothing to do
	quiet        chan struct{} // made by drain, closed when nothing but stuck handlers is left
}

func newRun(ctx context.Context, c *Consumer) *run {
	r := &run{Consumer: c, ctx: ctx, began: time.Now(), wake: make(chan struct{}, 1)}
	lasting := context.WithoutCancel(ctx)
	r.claims, r.endClaims = context.WithCancel(lasting)
	r.handlers, r.endHandlers = context.WithCancelCause(lasting)
	r.settles, r.endSettles = context.WithCancel(lasting)
	for _, name := range slices.Sorted(maps.Keys(c.routes)) {
		to := c.routes[name]
		weight := max(c.config.Queues[to.scope.Queue], 1)
		r.sources = append(r.sources, &source{route: to, weight: float64(weight), ready: true})
	}
	r.keeper = &keeper{
		engine: c.client.engine,
		lane:   c.client.lane,
		lease:  c.config.Lease,
		grace:  c.config.Grace,
		hooks:  c.config.Hooks,
		log:    c.log,
		stuck:  r.replace,
		wake:   make(chan struct{}, 1),
	}
	return r
}

// loop starts claims until ctx ends.
func (r *run) loop(ctx context.Context) {
	w := waiting{run: r}
	defer w.stop()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for ctx.Err() == nil {
		idle, at, next := r.dispatch(time.Now())
		w.watch(ctx, idle, next)
		var again <-chan time.Time
		if !at.IsZero() {
			timer.Reset(time.Until(at))
			again = timer.C
		}
		select {
		case <-ctx.Done():
		case <-r.wake:
		case <-again:
		}
	}
}

// changed tells the loop, and the drain if nothing is left. The caller holds r.mu.
func (r *run) changed() {
	if r.quiet == nil {
		poke(r.wake)
		return
	}
	if r.claiming == 0 && r.settling == 0 && r.running == r.stuck && len(r.ahead) == 0 {
		select {
		case <-r.quiet:
		default:
			close(r.quiet)
		}
	}
}

// freed is changed for what makes room and nothing else: the loop hears of it when a claim is worth
// its while. The caller holds r.mu.
func (r *run) freed() {
	if r.quiet != nil || r.hungry && r.roomy() {
		r.changed()
	}
}
