// SPDX-License-Identifier: Apache-2.0

package history

import (
	"time"

	"github.com/bidemq/bide/storage"
)

// repetition is how long an engine takes at least before it repeats a call whose answer was lost.
const repetition = 5 * time.Millisecond

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
		if x.maybe() && x.Began.Before(by) && !x.end().Before(e.Began) {
			return "canceled"
		}
	}
	for _, x := range s.drops {
		if x.maybe() && x.Began.Before(by) && !x.end().Before(e.Began) {
			return "dropped"
		}
	}
	for _, x := range s.enqueues {
		repeated := c.Repeats && x.Ended.Sub(x.Began) >= repetition // and answered for the last time that it took effect
		replaces := x.Outcome == storage.Replaced || x.Outcome == storage.Reran || x.OnLive != storage.Keep && (x.Fate != OK || repeated)
		if x.maybe() && x.Item != e.Item && replaces && x.Began.Before(by) && !x.end().Before(e.Began) {
			return "replaced"
		}
	}
	config := c.final.Stats.Config
	if (e.ExpireIn > 0 || config.ExpireIn > 0 || config.KeyIdle > 0 && e.Key != "") && c.final.Stats.Total.Expired > 0 {
		return "expired"
	}
	bounded := e.Max > 0 || config.MaxDeliveries > 0
	for _, x := range c.others {
		if (x.Op != "claim" || bounded) && x.maybe() && x.Began.Before(by) && e.Began.Before(x.end()) {
			return x.Op // which names no message: a claim may have spent its last attempt
		}
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
		if e.Fate != OK || e.Outcome != storage.Stored && e.Outcome != storage.Replaced {
			continue
		}
		rewound := c.rewound(e.Call)
		if rewound {
			c.report.Rewound.Answered++
		}
		if present[e.Seq] {
			continue
		}
		// A record out of attempts is dead, and dead ones are there, unless they were trimmed or redriven.
		switch why := c.end(e, never); {
		case rewound:
			if why == "" {
				c.report.Rewound.Lost++
			}
		case why == "" || why == "expired":
			c.gone = append(c.gone, c.violation(NoLoss, "record %d was stored and is gone", e.Seq))
		case (why == "out of attempts" || why == "claim") && !c.trims() && !c.otherCalls("purge") && !c.otherCalls("redrive"):
			if _, maybe := c.story.settled(e.Seq, c.Repeats, storage.Ack); len(maybe) == 0 {
				c.violated(NoLoss, "record %d has died (%s) and is not among the dead", e.Seq, why)
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
	if last == nil || last.Outcome != storage.Reran || c.rewound(last.Call) || c.drops() {
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

// counted: of what is gone without a word, some may have expired, or have been dropped by an enqueue
// whose answer was lost. No more may than the queue has counted.
func (c *checker) counted() {
	named := int64(0)
	for _, s := range c.stories {
		for _, d := range s.drops {
			if d.Fate == OK && !c.rewound(d.Call) {
				named++
			}
		}
	}
	total := c.final.Stats.Total
	if int64(len(c.gone)) > total.Expired+max(0, total.Dropped-named) {
		c.report.Violations = append(c.report.Violations, c.gone...)
	}
}

func (c *checker) drops() bool {
	config := c.final.Stats.Config
	return config.Overflow == storage.DropOldest && (config.MaxLen > 0 || config.MaxPerKey > 0)
}

func (c *checker) trims() bool {
	config := c.final.Stats.Config
	return config.DeadFor > 0 || config.DeadCount > 0
}
