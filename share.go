// SPDX-License-Identifier: Apache-2.0

package bide

import "time"

// source is a queue, or a part of one, as a running consumer sees it. Its fields are guarded by
// run.mu.
//
// Queues share the handlers by time: each is charged what its handlers took, divided by its weight,
// and who was charged least goes first. So neither a long backlog nor slow handlers of one queue
// keep the others waiting, and what one does not use goes to the rest.
type source struct {
	*route
	weight float64

	configured bool // the engine knows the batches of the route
	ordered    bool // the queue is, as far as is known: only looked at for batches

	ready    bool      // a claim may find something
	sparse   bool      // the last claim has brought all there was
	asked    int       // handlers that the claim under way is for, 0 if there is none
	sent     time.Time // when the last claim was begun
	next     time.Time // ready from then on, zero if only a notice makes it so
	failures int       // claims that failed since the last one that worked

	charged float64 // seconds by weight, of handlers that are done
	running int     // handlers
	ahead   int     // units claimed that no handler has begun
	starts  float64 // sum of their starts, in seconds since the run began
	average float64 // seconds that a handler takes
	share   int     // handlers allotted in this round
}

// leastCharge is the charge of a handler that takes no time to speak of, in seconds.
const leastCharge = 0.001

func (s *source) begin(at float64) {
	s.running++
	s.starts += at
}

func (s *source) end(start, now float64) {
	took := max(now-start, leastCharge)
	s.running--
	s.starts -= start
	s.charged += took / s.weight
	s.average += (took - s.average) / 8
}

// virtual is what the source was charged, with the handlers that run.
func (s *source) virtual(now float64) float64 {
	return s.charged + (float64(s.running)*now-s.starts)/s.weight
}

// portions is how many parts what is free is given out in: few enough that claims from many queues
// bring more than a message each, and so many that a queue does not wait long for its turn.
const portions = 16

// allot gives out n handlers among sources, and returns the least charge it met, from which sources
// that had nothing to do go on.
func allot(sources []*source, n int, now float64) (floor float64) {
	for i, s := range sources {
		s.share = 0
		if v := s.virtual(now); i == 0 || v < floor {
			floor = v
		}
	}
	if len(sources) == 1 {
		sources[0].share = n
		return floor
	}
	for portion := max(1, n/portions); n > 0; n -= portion {
		best, least := 0, 0.0
		for i, s := range sources {
			v := s.virtual(now) + float64(s.asked+s.ahead+s.share)*max(s.average, leastCharge)/s.weight
			if i == 0 || v < least {
				best, least = i, v
			}
		}
		sources[best].share += min(portion, n)
	}
	return floor
}
