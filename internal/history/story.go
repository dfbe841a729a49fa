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

// event is a message in a call.
type event struct {
	*Call
	*Item
}

// story is all that the history knows about one id in one queue.
type story struct {
	id         string
	enqueues   []event
	deliveries []event // by token
	extends    []event
	settles    []event
	cancels    []event
	edits      []event
	drops      []event // enqueues that say that it made room
}

// stories sorts the calls on a queue by message. Other calls are those that name none.
func stories(calls []Call, queue string) (byID map[string]*story, others []*Call) {
	byID = map[string]*story{}
	of := func(id string) *story {
		s := byID[id]
		if s == nil {
			s = &story{id: id}
			byID[id] = s
		}
		return s
	}
	for i := range calls {
		c := &calls[i]
		if c.Queue != queue {
			continue
		}
		if len(c.Items) == 0 && (c.Op != "claim" || c.Fate != OK) {
			others = append(others, c)
		}
		for k := range c.Items {
			e := event{c, &c.Items[k]}
			s := of(e.ID)
			switch c.Op {
			case "enqueue":
				s.enqueues = append(s.enqueues, e)
				for _, id := range e.Dropped {
					of(id).drops = append(of(id).drops, e)
				}
			case "claim":
				s.deliveries = append(s.deliveries, e)
			case "extend":
				s.extends = append(s.extends, e)
			case "settle":
				s.settles = append(s.settles, e)
			case "cancel":
				s.cancels = append(s.cancels, e)
			case "edit":
				s.edits = append(s.edits, e)
			}
		}
	}
	for _, s := range byID {
		slices.SortStableFunc(s.deliveries, func(a, b event) int { return cmp.Compare(a.Token, b.Token) })
	}
	return byID, others
}

// took says whether a settlement may have taken effect. An engine that repeats calls over a network
// may report as lost what it has settled itself.
func (s *story) took(e event, repeats bool) bool {
	return e.maybe() && (!e.Lost || repeats && e.Fate == OK)
}

// ended says whether something may have ended a lease before an instant.
func (s *story) ended(token int64, before time.Time, repeats bool) bool {
	for _, e := range s.settles {
		if e.Token == token && s.took(e, repeats) && e.Began.Before(before) {
			return true
		}
	}
	for _, e := range s.cancels {
		if e.maybe() && e.Began.Before(before) {
			return true
		}
	}
	return false
}

// settled returns the settlements that were answered as done, and those that may have been, of any
// lease of a record; sequences are those of its deliveries.
func (s *story) settled(seq int64, repeats bool, verdicts ...storage.Verdict) (sure, maybe []event) {
	tokens := map[int64]bool{}
	for _, d := range s.deliveries {
		if d.Seq == seq {
			tokens[d.Token] = true
		}
	}
	for _, e := range s.settles {
		switch {
		case !tokens[e.Token] || !slices.Contains(verdicts, e.Verdict):
		case e.Fate == OK && !e.Lost:
			sure = append(sure, e)
		case s.took(e, repeats):
			maybe = append(maybe, e)
		}
	}
	return sure, maybe
}

// returned says whether a delivery may have been given back as not begun, which counts neither it nor
// its attempt.
func (s *story) returned(d event, repeats bool) bool {
	return slices.ContainsFunc(s.settles, func(e event) bool {
		return e.Token == d.Token && e.Verdict == storage.Return && (e.Fate == OK && !e.Lost || s.took(e, repeats))
	})
}

// tell is the story in lines, in the order in which its calls began.
func (s *story) tell() string {
	all := slices.Concat(s.enqueues, s.deliveries, s.extends, s.settles, s.cancels, s.edits, s.drops)
	slices.SortStableFunc(all, func(a, b event) int { return a.Began.Compare(b.Began) })
	var b strings.Builder
	for _, e := range all {
		fmt.Fprintf(&b, "  %s %s#%d %s %s", e.Began.Format("15:04:05.000000"), e.Process, e.Number, e.Op, e.ID)
		if e.Seq > 0 {
			fmt.Fprintf(&b, " seq %d", e.Seq)
		}
		if e.Token > 0 {
			fmt.Fprintf(&b, " token %d", e.Token)
		}
		if e.Op == "claim" {
			fmt.Fprintf(&b, " at %s until %s, delivery %d, attempt %d", e.Now.Format("15:04:05.000"), e.Until.Format("15:04:05.000"), e.Deliveries, e.Attempts)
		}
		if e.Op == "enqueue" {
			fmt.Fprintf(&b, " key %q, attempts %d, due %s: %s", e.Key, e.Max, e.Due.Format("15:04:05.000"), e.Outcome)
		}
		if e.Op == "settle" {
			fmt.Fprintf(&b, " %s", e.Verdict)
		}
		if e.Lost {
			b.WriteString(" (lost)")
		}
		fmt.Fprintf(&b, " %s", cmp.Or(string(e.Fate), "pending"))
		if e.Error != "" {
			fmt.Fprintf(&b, " (%s)", e.Error)
		}
		b.WriteByte('\n')
	}
	return b.String()
}
