// SPDX-License-Identifier: Apache-2.0

package bide

import (
	"context"
	"time"

	"github.com/bidemq/bide/storage"
)

// claimBytes and claimMost bound what one claim brings: an engine with one thread is to be free again
// within milliseconds, however much it holds.
const (
	claimBytes = 8 << 20
	claimMost  = 256
)

// claimPatience is how long handlers are kept for a queue whose claim has not come back. Without it
// all that become free meanwhile would go to other queues.
const claimPatience = 50 * time.Millisecond

// dispatch starts a claim for every source that is ready and gets a share of the free handlers. It
// returns the sources that wait for a notice, the earliest instant at which to look again whatever
// happens, and that at which time alone makes one of the idle ones ready; zero if there is none.
func (r *run) dispatch(now time.Time) (idle []*source, again, next time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pace.look(now)
	again = r.giveBack(now.Add(-holdAhead))
	r.contest, r.hungry = r.contest[:0], false
	waiting := false // a source is ready and has no claim under way
	var patient time.Time
	for _, s := range r.sources {
		if !s.ready && !s.next.IsZero() && !s.next.After(now) {
			r.activate(s)
		}
		switch {
		case s.asked > 0:
			if until := s.sent.Add(claimPatience); now.Before(until) {
				r.contest = append(r.contest, s)
				patient = earlier(patient, until)
			}
		case s.ready && s.sparse && now.Before(s.sent.Add(r.pace.gather())):
			again = earlier(again, s.sent.Add(r.pace.gather()))
		case s.ready:
			r.contest = append(r.contest, s)
			waiting = true
		case s.failures > 0:
			again = earlier(again, s.next)
		default:
			idle = append(idle, s)
			next = earlier(next, s.next)
		}
	}
	if !waiting || !r.roomy() {
		r.hungry = waiting
		return idle, again, next
	}
	r.floor = max(r.floor, allot(r.contest, r.free(), r.seconds(now)))
	for _, s := range r.contest {
		r.hungry = r.hungry || s.asked == 0 && s.share == 0
		if s.asked == 0 && s.share > 0 {
			s.asked, s.sent = min(s.share, claimMost), now
			if s.batch != nil {
				s.asked = 1
			}
			r.claiming++
			r.reserved += s.asked
			go r.claim(s, s.asked)
		}
	}
	return idle, earlier(again, patient), next
}

// activate marks a source that a claim may find something in.
func (r *run) activate(s *source) {
	s.ready = true
	if s.running == 0 {
		s.charged = max(s.charged, r.floor)
	}
}

// free counts the units that can be claimed: for free handlers, and ahead. Deliveries that are being
// settled take no handler, so that claims and settlements overlap, but bound what is held.
func (r *run) free() int {
	held := r.config.Concurrency + r.pace.ahead()
	most := held + r.stuck - r.running - r.reserved - len(r.ahead)
	return min(most, most+held-r.settling)
}

func (r *run) seconds(t time.Time) float64 { return t.Sub(r.began).Seconds() }

// claim makes one claim, begun by dispatch for n handlers, and starts what it brings. A claim that is
// under way when the run's context ends is not cut off: what it brings is given back. One that the
// engine does not answer is cut off, and what it may have taken comes back when the leases end.
func (r *run) claim(s *source, n int) {
	queue := s.scope.Queue
	ask := storage.Claim{
		Queue:    queue,
		Keys:     s.scope.Keys,
		Except:   s.scope.Except,
		Limit:    n,
		MaxBytes: claimBytes,
		Lease:    r.config.Lease,
		By:       r.config.Name,
	}
	if s.batch != nil {
		ask.Limit, ask.Group = s.batch.Max, !s.batch.Mixed
	}
	sent := time.Now()
	var got storage.Claimed
	err := bounded(r.claims, min(r.config.Lease, callPatience), func(ctx context.Context) error {
		err := r.configure(ctx, s)
		if err == nil {
			sent = time.Now()
			got, err = r.client.engine.Claim(ctx, time.Time{}, ask)
		}
		return err
	})
	replied := time.Now()
	if r.config.Hooks.OnClaim != nil {
		r.config.Hooks.OnClaim(queue, len(got.Records), replied.Sub(sent), err)
	}
	if err != nil && r.ctx.Err() == nil {
		r.log.WarnContext(r.ctx, "claim failed, trying again", "queue", queue, "error", err)
	}
	units := r.units(s, &got, sent, replied)

	r.mu.Lock()
	r.pace.claimed(replied.Sub(sent))
	r.claiming--
	r.reserved -= n
	s.asked = 0
	s.next = time.Time{}
	switch {
	case err != nil:
		s.failures++
		s.ready = false
		s.next = replied.Add(repeatAfter(s.failures))
	case got.Next == storage.Forever:
		s.failures, s.ready = 0, false
	default:
		s.failures, s.ready = 0, got.Next <= 0
		s.next = replied.Add(got.Next)
	}
	s.sparse = !s.ready
	s.ahead += len(units)
	r.ahead = append(r.ahead, units...)
	r.begin(replied)
	if r.quiet != nil {
		r.giveBack(replied)
	}
	r.changed()
	r.mu.Unlock()
}

// single is a unit of one message, in one piece: the records of a claim do not keep each other in memory.
type single struct {
	unit
	hold     hold
	holds    [1]*hold
	delivery Delivery[[]byte]
	got      claimed
}

// units are what a claim has brought: one for each message, or one for all of them.
func (r *run) units(s *source, got *storage.Claimed, sent, replied time.Time) []*unit {
	if len(got.Records) == 0 {
		return nil
	}
	singles, together := make([]*unit, len(got.Records)), make([]*hold, len(got.Records))
	for i := range got.Records {
		one := &single{got: claimed{queue: s.scope.Queue, record: got.Records[i]}}
		one.delivery = delivery(&one.got, got.Now)
		one.hold.Delivery, one.hold.renewed = &one.delivery, sent
		one.holds[0], together[i] = &one.hold, &one.hold
		one.source, one.unit.holds, one.claimed = s, one.holds[:], replied
		singles[i] = &one.unit
	}
	if s.batch != nil {
		return []*unit{{source: s, holds: together, claimed: replied}}
	}
	return singles
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
