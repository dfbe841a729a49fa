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
	Violations []Violation
}

// String is the report in a few lines, and all violations.
func (r Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d messages, %d deliveries, duplicates by reason %v, %d violations", r.Messages, r.Deliveries, r.Duplicates, len(r.Violations))
	for _, v := range r.Violations {
		b.WriteString("\n" + v.String())
	}
	return b.String()
}

// Terms of a check.
type Terms struct {
	Patience time.Duration // what is ready in the end must not have been so for longer
	Repeats  bool          // the engine repeats calls over a network, and may say lost of what it has settled itself
}

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
	c.calls = calls
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
	c.order()
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
	calls   []Call
	final   Final
	stories map[string]*story
	others  []*Call
	story   *story // the one that is looked at
	report  Report
}

func (c *checker) violated(invariant, format string, args ...any) {
	v := Violation{Invariant: invariant, What: fmt.Sprintf(format, args...)}
	if c.story != nil {
		v.ID, v.Story = c.story.id, c.story.tell()
	}
	c.report.Violations = append(c.report.Violations, v)
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
			if e.Fate == OK && e.Seq == d.Seq && e.Outcome != storage.Duplicate && d.Now.Before(e.Due) {
				c.violated(NotEarly, "delivery with token %d came %s before the time that the producer was told", d.Token, e.Due.Sub(d.Now))
			}
		}
	}
}

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
		case d.Now.Before(until):
			c.violated(OneOwner, "token %d was handed out %s before the lease of token %d ended", d.Token, until.Sub(d.Now), before.Token)
		default:
			c.report.Duplicates["lease ended"]++
		}
	}
	for _, s := range c.story.settles {
		for _, d := range ds {
			if s.Fate == OK && !s.Lost && d.Token > s.Token && d.Ended.Before(s.Began) && c.sameRecord(s.Token, d.Token) {
				c.violated(OneOwner, "%s with token %d was accepted after token %d had been handed out", s.Verdict, s.Token, d.Token)
			}
		}
	}
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
		for i := range c.calls {
			if o := &c.calls[i]; o.Queue == d.Queue && !o.Ended.IsZero() && o.Ended.Before(e.Began) && o.Now.After(known) {
				known = o.Now
			}
		}
		least := known.Add(time.Duration(e.Lease) * time.Millisecond)
		switch {
		case e.Fate == OK && e.Ended.Before(before):
			until = least
		case least.Before(until):
			until = least
		}
	}
	return until
}

// attempts: each delivery of a record is counted, none twice, and none is made beyond those allowed.
func (c *checker) attempts() {
	last := map[int64]int{} // deliveries by sequence
	for _, d := range c.story.deliveries {
		c.report.Deliveries++
		if d.Deliveries <= last[d.Seq] {
			c.violated(Attempts, "delivery %d of record %d came after delivery %d", d.Deliveries, d.Seq, last[d.Seq])
		}
		last[d.Seq] = d.Deliveries
		if d.Max > 0 && d.Attempts > d.Max {
			c.violated(Attempts, "attempt %d of %d was made", d.Attempts, d.Max)
		}
	}
	for seq := range last {
		if sure, _ := c.story.settled(seq, c.Repeats, storage.Ack, storage.Bury, storage.Expire); len(sure) > 1 {
			c.violated(OneOwner, "record %d was finished %d times", seq, len(sure))
		}
	}
}

// dedup: while an id is live, no second record is stored under it.
func (c *checker) dedup() {
	for i, e := range c.story.enqueues {
		if e.Fate != OK || e.Outcome != storage.Stored {
			continue
		}
		for _, later := range c.story.enqueues[i+1:] {
			if later.Fate != OK || later.Outcome != storage.Stored || later.Seq == e.Seq || later.Began.Before(e.Ended) {
				continue
			}
			if !c.mayHaveEnded(e, later.Ended) {
				c.violated(Dedup, "record %d was stored while record %d was live", later.Seq, e.Seq)
			}
			break
		}
	}
}

// mayHaveEnded says whether the record of an enqueue may have been finished or removed by an instant.
func (c *checker) mayHaveEnded(e event, by time.Time) bool {
	return c.end(e, by) != ""
}

// end returns what may have ended the record of an enqueue by an instant of the machine's clock, ""
// if nothing has.
func (c *checker) end(e event, by time.Time) string {
	s := c.story
	sure, maybe := s.settled(e.Seq, c.Repeats, storage.Ack, storage.Bury, storage.Expire)
	for _, settle := range append(sure, maybe...) {
		if settle.Began.Before(by) {
			return "settled"
		}
	}
	for _, x := range s.cancels {
		if x.maybe() && x.Began.Before(by) {
			return "canceled"
		}
	}
	for _, x := range s.drops {
		if x.maybe() && x.Began.Before(by) {
			return "dropped"
		}
	}
	for _, x := range s.enqueues {
		replaces := x.Outcome == storage.Replaced || x.Outcome == storage.Reran || x.Fate != OK && x.OnLive != storage.Keep
		if x.maybe() && x.Item != e.Item && replaces && x.Began.Before(by) && !x.Ended.Before(e.Began) {
			return "replaced"
		}
	}
	for _, x := range c.others {
		if (x.Op == "purge" || x.Op == "redrive" || x.Op == "claim" && x.Fate != OK) && x.maybe() && x.Began.Before(by) && e.Began.Before(x.end()) {
			return x.Op // which names no message
		}
	}
	expires := e.ExpireIn > 0 || c.final.Stats.Config.ExpireIn > 0 || c.final.Stats.Config.KeyIdle > 0 && e.Key != ""
	if expires {
		return "expired"
	}
	if e.Max > 0 {
		for _, d := range s.deliveries {
			if d.Seq == e.Seq && d.Attempts >= d.Max && d.Began.Before(by) {
				return "out of attempts"
			}
		}
	}
	return ""
}

// noLoss: what was answered as stored is there, or something has ended it.
func (c *checker) noLoss() {
	present := map[int64]bool{}
	for _, r := range c.present() {
		present[r.Seq] = true
	}
	for _, e := range c.story.enqueues {
		if e.Fate != OK || e.Outcome != storage.Stored && e.Outcome != storage.Replaced || present[e.Seq] {
			continue
		}
		// A record out of attempts is dead, and dead ones are there, unless they were trimmed or redriven.
		switch why := c.end(e, never); {
		case why == "":
			c.violated(NoLoss, "record %d was stored and is gone", e.Seq)
		case why == "out of attempts" && !c.trims() && !c.otherCalls("purge") && !c.otherCalls("redrive"):
			if _, maybe := c.story.settled(e.Seq, c.Repeats, storage.Ack); len(maybe) == 0 {
				c.violated(NoLoss, "record %d has died and is not among the dead", e.Seq)
			}
		}
	}
}

// noLostSuccessor: the latest rerun has started, or waits for the record that it follows.
func (c *checker) noLostSuccessor() {
	var last *event
	for i := range c.story.enqueues {
		if e := &c.story.enqueues[i]; e.Fate == OK && (e.Outcome == storage.Reran || e.Outcome == storage.Replaced) {
			last = e
		}
	}
	if last == nil || last.Outcome != storage.Reran {
		return
	}
	for _, r := range c.present() {
		if r.Seq == last.Seq || r.Successor {
			return
		}
	}
	for _, d := range c.story.deliveries {
		if d.Seq == last.Seq {
			return
		}
	}
	if c.end(*last, never) == "" {
		c.violated(NoLoss, "record %d was stored as a successor and is gone", last.Seq)
	}
}

func (c *checker) trims() bool {
	config := c.final.Stats.Config
	return config.DeadFor > 0 || config.DeadCount > 0
}
