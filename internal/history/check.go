// SPDX-License-Identifier: Apache-2.0

package history

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bidemq/bide/storage"
)

// Invariants, by the names that violations have.
const (
	NoLoss       = "I1 no loss"
	NoInvention  = "I2 no invention"
	NotEarly     = "I3 not early"
	OneOwner     = "I4 one owner"
	Attempts     = "I5 attempts monotonic"
	Conservation = "I6 conservation"
	Order        = "I7 order"
	Dedup        = "I8 dedup"
	Bounded      = "I9 bounded"
	Liveness     = "I10 liveness"
)

// Violation is a promise that was not kept.
type Violation struct {
	Invariant string
	ID        string // "" if it is about the queue
	What      string
	Story     string // what happened to the message
}

// String is the violation with its story.
func (v Violation) String() string {
	return fmt.Sprintf("%s: %s: %s\n%s", v.Invariant, cmp.Or(v.ID, "the queue"), v.What, v.Story)
}

// Report is what a check has found.
type Report struct {
	Messages   int // ids
	Deliveries int
	Duplicates map[string]int // deliveries after the first, by what explains them
	Rewound    Rewound
	Violations []Violation
}

// Rewound counts what was answered while the engine could lose it, see [Terms.Rewinds].
type Rewound struct {
	Answered int // messages that were stored within
	Lost     int // those of them that are gone, and nothing says why
	Again    int // deliveries of what had been settled within
	Tokens   int // tokens that two primaries have handed out for different messages
}

// String is the report in a few lines, and all violations.
func (r Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d messages, %d deliveries, duplicates by reason %v, %d violations", r.Messages, r.Deliveries, r.Duplicates, len(r.Violations))
	if r.Rewound != (Rewound{}) {
		fmt.Fprintf(&b, "; around failovers %d were stored, %d of them lost, %d handed out again after they were settled, %d tokens were given to two",
			r.Rewound.Answered, r.Rewound.Lost, r.Rewound.Again, r.Rewound.Tokens)
	}
	for _, v := range r.Violations {
		b.WriteString("\n" + v.String())
	}
	return b.String()
}

// Terms of a check.
type Terms struct {
	Patience time.Duration // what is ready in the end must not have been so for longer
	Repeats  bool          // the engine repeats calls over a network, and may say lost of what it has settled itself
	Rewinds  []Span        // what was answered within may be lost, whole: each call for itself, and from some instant on all
	Holes    []Span        // a structure that the order of keys stands in was missing within: what is claimed then may be out of it
	Turns    []Span        // the engine's clock was turned within: ends of leases are not compared across
}

// Span is a time on the machine's clock.
type Span struct{ From, To time.Time }

// meets says whether some of it lies between two instants.
func (s Span) meets(from, to time.Time) bool { return !to.Before(s.From) && !from.After(s.To) }

// Check compares the calls on a queue with what it holds in the end.
func Check(calls []Call, f Final, t Terms) Report {
	c := checker{final: f, Terms: t, report: Report{Duplicates: map[string]int{}}}
	c.stories, c.others = stories(calls, f.Queue)
	for i := range f.Records {
		r := &f.Records[i]
		if c.stories[r.ID] == nil {
			c.stories[r.ID] = &story{id: r.ID}
		}
	}
	c.clock = newClock(calls, f.Queue)
	for _, id := range sortedIDs(c.stories) {
		c.story = c.stories[id]
		c.report.Messages++
		c.noInvention()
		c.notEarly()
		c.oneOwner()
		c.attempts()
		c.dedup()
		c.noLoss()
		c.noLostSuccessor()
	}
	c.story = nil
	c.tokens(calls)
	c.order()
	c.counted()
	c.queue()
	return c.report
}

func sortedIDs(stories map[string]*story) []string {
	ids := make([]string, 0, len(stories))
	for id := range stories {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

type checker struct {
	Terms
	clock   clock
	final   Final
	stories map[string]*story
	others  []*Call
	story   *story      // the one that is looked at
	gone    []Violation // of what may have expired, or have been dropped
	report  Report
}

// amiss says whether a call claimed while the order of keys could not be known.
func (c *checker) amiss(call *Call) bool {
	return slices.ContainsFunc(c.Holes, func(s Span) bool { return s.meets(call.Began, call.end()) })
}

// rewound says whether the effect of a call may be lost although it was answered.
func (c *checker) rewound(call *Call) bool {
	return slices.ContainsFunc(c.Rewinds, func(s Span) bool { return s.meets(call.Began, call.end()) })
}

func (c *checker) violated(invariant, format string, args ...any) {
	c.report.Violations = append(c.report.Violations, c.violation(invariant, format, args...))
}

func (c *checker) violation(invariant, format string, args ...any) Violation {
	v := Violation{Invariant: invariant, What: fmt.Sprintf(format, args...)}
	if c.story != nil {
		v.ID, v.Story = c.story.id, c.story.tell()
	}
	return v
}

// present returns the records of the id that are stored in the end.
func (c *checker) present() []*storage.Record {
	var found []*storage.Record
	for i := range c.final.Records {
		if r := &c.final.Records[i]; r.ID == c.story.id {
			found = append(found, r)
		}
	}
	return found
}

// otherCalls says whether calls that name no message may have taken effect.
func (c *checker) otherCalls(op string) bool {
	return slices.ContainsFunc(c.others, func(o *Call) bool { return o.Op == op && o.maybe() })
}

// noInvention: what is delivered or stored was published, with these bytes.
func (c *checker) noInvention() {
	bodies := map[string]bool{}
	unsure := false
	for _, e := range c.story.enqueues {
		if e.maybe() {
			bodies[e.Body] = true
		}
	}
	for _, e := range c.story.edits {
		bodies[e.Body] = true
		unsure = unsure || e.Fate != OK && e.maybe()
	}
	for _, d := range c.story.deliveries {
		if !bodies[d.Body] && !unsure {
			c.violated(NoInvention, "delivery with token %d has a body that nobody has published", d.Token)
		}
	}
	for _, r := range c.present() {
		if !bodies[content(r.Body, r.Headers)] && !unsure {
			c.violated(NoInvention, "record %d is stored with a body that nobody has published", r.Seq)
		}
	}
}

// notEarly: no delivery comes before its due time, nor before the one that the producer was told.
func (c *checker) notEarly() {
	for _, d := range c.story.deliveries {
		if d.Now.Before(d.Due) {
			c.violated(NotEarly, "delivery with token %d came %s before its time", d.Token, d.Due.Sub(d.Now))
		}
		if len(c.story.edits) > 0 {
			continue
		}
		for _, e := range c.story.enqueues {
			if e.Fate == OK && e.Seq == d.Seq && e.Outcome != storage.Duplicate && d.Now.Before(e.Due) && !e.Began.After(d.Ended) && !c.rewound(e.Call) && !c.turned(e, d) {
				c.violated(NotEarly, "delivery with token %d came %s before the time that the producer was told", d.Token, e.Due.Sub(d.Now))
			}
		}
	}
}

// attempts: each delivery of a record is counted, none twice, and none is made beyond those allowed.
func (c *checker) attempts() {
	last := map[int64]int{} // deliveries by sequence
	for _, d := range c.story.deliveries {
		c.report.Deliveries++
		if d.Deliveries <= last[d.Seq] {
			c.violated(Attempts, "delivery %d of record %d came after delivery %d", d.Deliveries, d.Seq, last[d.Seq])
		}
		if !c.rewound(d.Call) {
			last[d.Seq] = d.Deliveries
			if c.story.returned(d, c.Repeats) {
				last[d.Seq]--
			}
		}
		if d.Max > 0 && d.Attempts > d.Max {
			c.violated(Attempts, "attempt %d of %d was made", d.Attempts, d.Max)
		}
	}
	for seq := range last {
		sure, _ := c.story.settled(seq, c.Repeats, storage.Ack, storage.Bury, storage.Expire)
		sure = slices.DeleteFunc(sure, func(e event) bool { return c.rewound(e.Call) })
		if len(sure) > 1 && !c.otherCalls("redrive") {
			c.violated(OneOwner, "record %d was finished %d times", seq, len(sure))
		}
	}
}

// dedup: while an id is live, no second record is stored under it.
func (c *checker) dedup() {
	for i, e := range c.story.enqueues {
		if e.Fate != OK || e.Outcome != storage.Stored || c.rewound(e.Call) {
			continue
		}
		for _, later := range c.story.enqueues[i+1:] {
			if later.Fate != OK || later.Outcome != storage.Stored || later.Seq == e.Seq || later.Began.Before(e.Ended) || c.rewound(later.Call) {
				continue
			}
			if !c.mayHaveEnded(e, later.Ended) {
				c.violated(Dedup, "record %d was stored while record %d was live", later.Seq, e.Seq)
			}
			break
		}
	}
}
