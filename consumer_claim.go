// SPDX-License-Identifier: Apache-2.0

package bide

import (
	"context"
	"time"

	"github.com/bidemq/bide/storage"
)

// claimBytes bounds what one claim brings.
const claimBytes = 8 << 20

// claimPatience is how long handlers are kept for a queue whose claim has not come back. Without it
// all that become free meanwhile would go to other queues.
const claimPatience = 50 * time.Millisecond

// dispatch starts a claim for every source that is ready and gets a share of the free handlers. It
// returns the sources that wait for a notice, the earliest instant at which to look again whatever
// happens, and that at which time alone makes one of the idle ones ready; zero if there is none.
func (r *run) dispatch(now time.Time) (idle []string, again, next time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.contest = r.contest[:0]
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
		case s.ready:
			r.contest = append(r.contest, s)
			waiting = true
		case s.failures > 0:
			again = earlier(again, s.next)
		default:
			idle = append(idle, s.name)
			next = earlier(next, s.next)
		}
	}
	free := r.free()
	if free <= 0 || !waiting {
		return idle, again, next
	}
	r.floor = max(r.floor, allot(r.contest, free, r.seconds(now)))
	for _, s := range r.contest {
		if s.asked == 0 && s.share > 0 {
			s.asked, s.sent = min(s.share, storage.MaxBatch), now
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

// free counts the handlers that can be promised. Deliveries that are being settled take no handler,
// so that claims and settlements overlap, but bound what is held.
func (r *run) free() int {
	most := r.config.Concurrency + r.stuck - r.running - r.reserved
	return min(most, most+r.config.Concurrency-r.settling)
}

func (r *run) seconds(t time.Time) float64 { return t.Sub(r.began).Seconds() }

// claim makes one claim, begun by dispatch, and starts what it brings. A claim that is under way
// when the run's context ends is not cut off: what it brings is given back. One that the engine
// does not answer is cut off, and what it may have taken comes back when the leases end.
func (r *run) claim(s *source, n int) {
	sent := time.Now()
	var got storage.Claimed
	err := bounded(r.claims, min(r.config.Lease, callPatience), func(ctx context.Context) (err error) {
		got, err = r.client.engine.Claim(ctx, time.Time{}, storage.Claim{
			Queue:    s.name,
			Limit:    n,
			MaxBytes: claimBytes,
			Lease:    r.config.Lease,
			By:       r.config.Name,
		})
		return err
	})
	replied := time.Now()
	if r.config.Hooks.OnClaim != nil {
		r.config.Hooks.OnClaim(s.name, len(got.Records), replied.Sub(sent), err)
	}
	if err != nil && r.ctx.Err() == nil {
		r.log.WarnContext(r.ctx, "claim failed, trying again", "queue", s.name, "error", err)
	}

	r.mu.Lock()
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
	for range got.Records {
		r.running++
		s.begin(r.seconds(replied))
	}
	r.changed()
	r.mu.Unlock()

	for i := range got.Records {
		h := &hold{
			Delivery: newDelivery(s.name, &got.Records[i], got.Now),
			source:   s,
			claimed:  replied,
			renewed:  sent,
		}
		if at := got.Records[i].Expires(); !at.IsZero() {
			h.expiry = replied.Add(at.Sub(got.Now))
		}
		go r.handle(h)
	}
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
