// SPDX-License-Identifier: Apache-2.0

package history

import (
	"cmp"
	"slices"
	"time"

	"github.com/bidemq/bide/storage"
)

// queue checks what concerns the queue as a whole.
func (c *checker) queue() {
	st := c.final.Stats
	n := st.Total
	stored := st.Delayed + st.Ready + st.Leased + st.Dead + st.Done
	if want := n.Enqueued - n.Replaced - n.Acked - n.Expired - n.Canceled - n.Purged - n.Dropped + n.Retained - n.Trimmed; stored != want {
		c.violated(Conservation, "%d records are counted by state, and %d by what has happened", stored, want)
	}
	if int64(len(c.final.Records)) != stored {
		c.violated(Conservation, "%d records are listed, and %d are counted", len(c.final.Records), stored)
	}
	for _, d := range c.final.Damage {
		c.violated(Conservation, "repair finds %s, %d times", d.What, d.Count)
	}
	config := st.Config
	if config.MaxLen > 0 && config.Overflow == storage.Refuse && n.Retried+n.Released+n.Lapsed+n.Redriven+n.Reruns == 0 && st.Delayed+st.Ready > int64(config.MaxLen) {
		c.violated(Bounded, "%d records wait in a queue that accepts %d", st.Delayed+st.Ready, config.MaxLen)
	}
	if config.DeadCount > 0 && st.Dead > int64(config.DeadCount+storage.MaxBatch) {
		c.violated(Bounded, "%d records are dead in a queue that keeps %d", st.Dead, config.DeadCount)
	}
	if config.RetainCount > 0 && st.Done > int64(config.RetainCount+storage.MaxBatch) {
		c.violated(Bounded, "%d records are done in a queue that keeps %d", st.Done, config.RetainCount)
	}
	for i := range c.final.Records {
		r := &c.final.Records[i]
		c.story = c.stories[r.ID]
		if waited := st.Now.Sub(r.Due); r.State == storage.Ready && !config.Paused && waited > c.Patience {
			c.violated(Liveness, "record %d has been due for %s", r.Seq, waited)
		}
		if r.State == storage.Leased && st.Now.Sub(r.Lease.Until) > c.Patience {
			c.violated(Liveness, "record %d has a lease that ended %s ago", r.Seq, st.Now.Sub(r.Lease.Until))
		}
	}
	c.story = nil
}

// order: in an ordered queue a record is not handed out while one before it in its key is unfinished,
// unless both come in one claim.
func (c *checker) order() {
	if !c.final.Stats.Config.Ordered {
		return
	}
	type handed struct {
		event
		story *story
	}
	keys := map[string][]handed{}
	for _, id := range sortedIDs(c.stories) {
		for _, d := range c.stories[id].deliveries {
			if d.Key != "" {
				keys[d.Key] = append(keys[d.Key], handed{d, c.stories[id]})
			}
		}
	}
	for _, ds := range keys {
		slices.SortFunc(ds, func(a, b handed) int { return cmp.Compare(a.Token, b.Token) })
		var open []handed // that may be unfinished
		for _, d := range ds {
			open = slices.DeleteFunc(open, func(before handed) bool { return c.finished(before.story, before.event, d.Began) })
			for _, before := range open {
				earlier := cmp.Or(before.FirstDue.Compare(d.FirstDue), cmp.Compare(before.Seq, d.Seq)) < 0
				if !earlier || together(d.Call, before.Item) || edited(before.story, d.Ended) || c.rewound(d.Call) || c.amiss(d.Call) {
					continue
				}
				if !c.finished(before.story, before.event, d.Ended) {
					c.story = before.story
					c.violated(Order, "token %d of %s was handed out while record %d, before it in key %q, was unfinished",
						d.Token, d.ID, before.Seq, d.Key)
				}
			}
			open = append(open, d)
		}
	}
	c.story = nil
}

// edited says whether a message may have got another due time, and so another place, by an instant.
func edited(s *story, by time.Time) bool {
	return slices.ContainsFunc(s.edits, func(e event) bool { return e.maybe() && e.Began.Before(by) })
}

// together says whether a call has handed out a record too.
func together(c *Call, it *Item) bool {
	return slices.ContainsFunc(c.Items, func(other Item) bool { return other.ID == it.ID && other.Seq == it.Seq })
}

// finished says whether the record of a delivery may have been finished by an instant.
func (c *checker) finished(s *story, d event, by time.Time) bool {
	before := c.story
	defer func() { c.story = before }()
	c.story = s
	for _, e := range s.enqueues {
		if e.Seq == d.Seq {
			return c.rewound(e.Call) || c.end(e, by) != ""
		}
	}
	return true // who has stored it does not know it
}
