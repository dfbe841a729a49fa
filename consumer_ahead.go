// SPDX-License-Identifier: Apache-2.0

package bide

import (
	"time"

	"github.com/bidemq/bide/storage"
)

// A consumer claims more than it has free handlers for, as much as they will begin while three claims
// are answered: handlers that take microseconds would wait for claims otherwise. Handlers that take
// longer than a claim have next to nothing claimed ahead, so that nobody else waits for it.
const (
	leastAhead = time.Millisecond       // of the handlers' work that is claimed ahead
	mostAhead  = 50 * time.Millisecond  // the same, where claims take long
	holdAhead  = 100 * time.Millisecond // what no handler has begun by then is given back
	maxAhead   = storage.MaxBatch / 2   // units claimed ahead
	paceOver   = 5 * time.Millisecond   // the least time that a pace is measured over

	manyPerSecond = 10_000           // messages, of which some are left to come together
	gatherFor     = time.Millisecond // the claims that bring all there is are then apart
)

// tempo is how fast handlers finish, and what follows from it. The zero value knows nothing and has
// nothing claimed ahead.
type tempo struct {
	finished  int           // units since
	since     time.Time     // when it was looked at
	perSecond float64       // units that finish
	trip      time.Duration // what a claim takes
}

// look takes the measure, if the last one is long enough ago.
func (p *tempo) look(now time.Time) {
	over := now.Sub(p.since)
	if over < paceOver {
		return
	}
	rate := float64(p.finished) / over.Seconds()
	if over < 10*paceOver {
		rate = (rate + p.perSecond) / 2
	}
	p.finished, p.since, p.perSecond = 0, now, rate
}

// claimed takes down what a claim has taken.
func (p *tempo) claimed(took time.Duration) {
	if p.trip == 0 {
		p.trip = took
	}
	p.trip += (took - p.trip) / 8
}

// ahead is how many units may be claimed beyond the free handlers.
func (p *tempo) ahead() int {
	span := min(max(3*p.trip, leastAhead), mostAhead)
	return min(int(p.perSecond*span.Seconds()), maxAhead)
}

// gather is how far claims of a queue are apart that bring all there is. Where messages come one after
// the other, each is claimed at once; where there are many, a claim for every few of them, and a notice
// before it, would cost more than all else that is done for them.
func (p *tempo) gather() time.Duration {
	if p.perSecond < manyPerSecond {
		return 0
	}
	return gatherFor
}

// roomy says whether there is room for a claim that is worth its while: as long as handlers have more
// to go on with than begins during a claim, it is left until it brings more. The caller holds r.mu.
func (r *run) roomy() bool {
	free := r.free()
	return free > 0 && (len(r.ahead) == 0 || free >= r.pace.ahead()/3)
}

// first takes the first unit that was claimed ahead. The caller holds r.mu.
func (r *run) first() *unit {
	u := r.ahead[0]
	r.ahead[0] = nil
	r.ahead = r.ahead[1:]
	u.source.ahead--
	return u
}

// next is first for a handler that begins the unit. The caller holds r.mu.
func (r *run) next(now time.Time) *unit {
	u := r.first()
	u.began = now
	u.source.begin(r.seconds(now))
	return u
}

// begin gives units to the handlers that are free. The caller holds r.mu.
func (r *run) begin(now time.Time) {
	for len(r.ahead) > 0 && r.running-r.stuck < r.config.Concurrency {
		r.running++
		go r.work(r.next(now))
	}
}

// giveBack returns what was claimed before an instant and no handler has begun, and returns when to
// look again, zero if nothing is left. The caller holds r.mu.
func (r *run) giveBack(before time.Time) (again time.Time) {
	for len(r.ahead) > 0 {
		if at := r.ahead[0].claimed; at.After(before) {
			return at.Add(holdAhead)
		}
		u := r.first()
		r.settling++
		for _, h := range u.holds {
			h.unit, h.unfit, h.end = u, true, storage.Settlement{Verdict: storage.Return}
		}
		u.ctx = r.handlers
		go r.settle(u, 0)
	}
	return time.Time{}
}
