// SPDX-License-Identifier: Apache-2.0

package history

import (
	"cmp"
	"slices"
	"sort"
	"time"

	"github.com/bidemq/bide/storage"
)

// oneOwner: a lease begins when the one before has ended, and who has lost one changes nothing.
func (c *checker) oneOwner() {
	ds := c.story.deliveries
	for i, d := range ds {
		if i == 0 {
			continue
		}
		before := ds[i-1]
		if before.Token == d.Token {
			c.violated(OneOwner, "token %d was handed out twice", d.Token)
		}
		if before.Seq != d.Seq {
			continue // another record
		}
		ended := c.story.ended(before.Token, d.Ended, c.Repeats)
		switch until := c.heldUntil(before, d.Began); {
		case ended:
			c.report.Duplicates["settled, or perhaps"]++
		case c.gaveBack(before, d):
			c.report.Duplicates["given back with another of its run"]++
		case c.turned(before, d):
			c.report.Duplicates["clock turned"]++
		case !d.Now.Before(until):
			c.report.Duplicates["lease ended"]++
		case c.rewound(before.Call):
			c.report.Duplicates["lost in a failover"]++
		default:
			c.violated(OneOwner, "token %d was handed out %s before the lease of token %d ended", d.Token, until.Sub(d.Now), before.Token)
		}
	}
	c.stale()
	c.again()
}

// stale: a settlement with a token is refused once a later one was handed out.
func (c *checker) stale() {
	for _, s := range c.story.settles {
		if s.Fate != OK || s.Lost || c.rewound(s.Call) {
			continue
		}
		for _, d := range c.story.deliveries {
			if d.Token > s.Token && d.Ended.Before(s.Began) && c.sameRecord(s.Token, d.Token) && !c.rewound(d.Call) {
				c.violated(OneOwner, "%s with token %d was accepted after token %d had been handed out", s.Verdict, s.Token, d.Token)
			}
		}
	}
}

// again: what was acknowledged is not handed out any more.
func (c *checker) again() {
	done := map[int64]event{} // by sequence
	for _, d := range c.story.deliveries {
		if _, known := done[d.Seq]; known {
			continue
		}
		done[d.Seq] = event{}
		sure, _ := c.story.settled(d.Seq, c.Repeats, storage.Ack, storage.Expire)
		for _, s := range sure {
			if done[d.Seq].Call == nil || s.Ended.Before(done[d.Seq].Ended) {
				done[d.Seq] = s
			}
		}
	}
	for _, d := range c.story.deliveries {
		switch s := done[d.Seq]; {
		case s.Call == nil || !d.Began.After(s.Ended):
		case c.rewound(s.Call):
			c.report.Rewound.Again++
		default:
			c.violated(OneOwner, "token %d was handed out after record %d had been settled with token %d", d.Token, d.Seq, s.Token)
		}
	}
}

// turned says whether the clock of the engine was turned between two calls.
func (c *checker) turned(before, d event) bool {
	return slices.ContainsFunc(c.Turns, func(s Span) bool { return s.meets(before.Began, d.Ended) })
}

func (c *checker) sameRecord(tokens ...int64) bool {
	seqs := map[int64]bool{}
	for _, d := range c.story.deliveries {
		if slices.Contains(tokens, d.Token) {
			seqs[d.Seq] = true
		}
	}
	return len(seqs) == 1
}

// gaveBack says whether a lease may have ended because another one of its run has, in an ordered queue.
func (c *checker) gaveBack(before, d event) bool {
	if !c.final.Stats.Config.Ordered || before.Key == "" {
		return false
	}
	for i := range before.Items {
		it := &before.Items[i]
		other := event{before.Call, it}
		if it.Key != before.Key || it.ID == before.ID {
			continue
		}
		if c.stories[it.ID].ended(it.Token, d.Ended, c.Repeats) || !d.Now.Before(c.heldUntilBy(c.stories[it.ID], other, d.Began)) {
			return true
		}
	}
	return false
}

// heldUntil is an instant of the engine's before which a lease cannot have ended by itself, by what was
// answered before a call began. An extension says no instant of the engine: its latest one known then
// is a lower bound. One that may have shortened the lease is none.
func (c *checker) heldUntil(d event, before time.Time) time.Time {
	return c.heldUntilBy(c.story, d, before)
}

func (c *checker) heldUntilBy(s *story, d event, before time.Time) time.Time {
	until := d.Until
	for _, e := range s.extends {
		if e.Token != d.Token || e.Lost || !e.maybe() {
			continue
		}
		known := d.Now
		if last := c.clock.before(e.Began); last.After(known) {
			known = last
		}
		least := known.Add(time.Duration(e.Lease) * time.Millisecond)
		switch {
		case e.Fate == OK && e.Ended.Before(before) && !c.rewound(e.Call):
			until = least
		case least.Before(until):
			until = least
		}
	}
	return until
}

// tokens: over the whole queue they are handed out once, and grow.
func (c *checker) tokens(calls []Call) {
	type grant struct {
		event
		last int64 // token of its claim
	}
	var grants []grant
	for i := range calls {
		claim := &calls[i]
		if claim.Op != "claim" || claim.Queue != c.final.Queue || len(claim.Items) == 0 {
			continue
		}
		g := grant{event: event{claim, &claim.Items[0]}}
		for k := range claim.Items {
			g.last = max(g.last, claim.Items[k].Token)
			if claim.Items[k].Token < g.Token {
				g.Item = &claim.Items[k]
			}
		}
		grants = append(grants, g)
	}
	slices.SortFunc(grants, func(a, b grant) int { return cmp.Compare(a.Token, b.Token) })
	for i := 1; i < len(grants); i++ {
		before, g := grants[i-1], grants[i]
		split := c.rewound(g.Call) && c.rewound(before.Call) // two primaries for a while
		switch {
		case g.Token <= before.last && split && g.ID != before.ID:
			c.report.Rewound.Tokens++ // a receipt names the message too
		case g.Token <= before.last:
			c.violated(OneOwner, "token %d was handed out for %s, and for %s a token up to %d", g.Token, g.ID, before.ID, before.last)
		case g.Ended.Before(before.Began):
			c.violated(OneOwner, "token %d of %s was handed out after the larger token %d of %s", g.Token, g.ID, before.Token, before.ID)
		}
	}
}

// clock knows the latest instant that an engine had told by an instant of the machine.
type clock struct {
	ended []time.Time // of calls, in order
	now   []time.Time // the latest that those up to here have told
}

func newClock(calls []Call, queue string) clock {
	var told []*Call
	for i := range calls {
		if c := &calls[i]; c.Queue == queue && !c.Ended.IsZero() && !c.Now.IsZero() {
			told = append(told, c)
		}
	}
	slices.SortFunc(told, func(a, b *Call) int { return a.Ended.Compare(b.Ended) })
	var k clock
	var latest time.Time
	for _, c := range told {
		if c.Now.After(latest) {
			latest = c.Now
		}
		k.ended, k.now = append(k.ended, c.Ended), append(k.now, latest)
	}
	return k
}

func (k clock) before(t time.Time) time.Time {
	n := sort.Search(len(k.ended), func(i int) bool { return !k.ended[i].Before(t) })
	if n == 0 {
		return time.Time{}
	}
	return k.now[n-1]
}
