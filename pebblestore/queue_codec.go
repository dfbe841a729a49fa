// SPDX-License-Identifier: Apache-2.0

package pebblestore

import (
	"math"
	"time"

	"github.com/bidemq/bide/storage"
)

// encode returns the value of Q.
func (q *queue) encode() []byte {
	b := append(make([]byte, 0, 256), valueFormat)
	b = appendBool(b, q.config.Paused)
	for _, n := range [...]int64{
		q.config.ExpireIn.Milliseconds(), int64(q.config.MaxDeliveries), q.seq, q.token, q.clock,
		q.count[storage.Ready], q.count[storage.Leased], q.count[storage.Dead], q.windows, q.due.before, q.due.n,
	} {
		b = appendInt(b, n)
	}
	for _, c := range q.counters() {
		b = appendInt(b, *c)
	}
	b = appendBounds(b, &q.waiting)
	for _, c := range q.lateCounters() {
		b = appendInt(b, *c)
	}
	b = q.appendConfig(b)
	b = appendInt(b, q.count[storage.Done])
	b = appendInt(b, q.retained)
	b = appendInt(b, q.keys)
	b = appendBool(b, q.replacing.on)
	b = appendString(b, q.replacing.from)
	b = appendInt(b, q.replacing.cap)
	b = appendBool(b, q.hasKeyed())
	if q.hasKeyed() {
		b = appendBounds(b, &q.keyed)
		b = appendBounds(b, &q.turns)
	}
	return b
}

// hasKeyed says whether there is anything to remember of the orders of keys.
func (q *queue) hasKeyed() bool {
	for i := range q.keyed {
		if q.keyed[i] != (bound{exact: true, empty: true}) || q.turns[i] != (bound{exact: true, empty: true}) {
			return true
		}
	}
	return false
}

func appendBounds(b []byte, of *[priorities]bound) []byte {
	for i := range of {
		b = appendInt(b, of[i].low.at)
		b = appendInt(b, of[i].low.seq)
	}
	return b
}

// appendConfig encodes what the first format did not have, behind one bit for each field that is
// set.
func (q *queue) appendConfig(b []byte) []byte {
	numbers := configNumbers(q.config)
	set := int64(0)
	for i, n := range numbers {
		if n != 0 {
			set |= 1 << i
		}
	}
	b = appendInt(b, set)
	for _, n := range numbers {
		if n != 0 {
			b = appendInt(b, n)
		}
	}
	return b
}

// configNumbers are the fields of a configuration, a new one last.
func configNumbers(c storage.QueueConfig) [15]int64 {
	flag := func(b bool) int64 {
		if b {
			return 1
		}
		return 0
	}
	return [...]int64{
		flag(c.Ordered), int64(c.KeyLimit), int64(c.MinBatch), c.Linger.Milliseconds(), c.KeyIdle.Milliseconds(),
		int64(c.MaxLen), int64(c.MaxPerKey), int64(c.Overflow),
		c.RetainFor.Milliseconds(), int64(c.RetainCount), c.RetainBytes,
		c.DeadFor.Milliseconds(), int64(c.DeadCount), flag(c.TellDead),
		int64(c.Shards),
	}
}

func (r *reader) config(c *storage.QueueConfig) {
	var n [15]int64
	set := r.int()
	for i := range n {
		if set&(1<<i) != 0 {
			n[i] = r.int()
		}
	}
	if n[7] > int64(storage.DropOldest) {
		r.fail("unknown overflow")
	}
	c.Ordered, c.KeyLimit, c.MinBatch, c.Linger, c.KeyIdle = n[0] == 1, int(n[1]), int(n[2]), r.span(n[3]), r.span(n[4])
	c.MaxLen, c.MaxPerKey, c.Overflow = int(n[5]), int(n[6]), storage.Overflow(n[7]&0xff)
	c.RetainFor, c.RetainCount, c.RetainBytes = r.span(n[8]), int(n[9]), n[10]
	c.DeadFor, c.DeadCount, c.TellDead = r.span(n[11]), int(n[12]), n[13] == 1
	c.Shards = int(n[14])
}

// span is a number of milliseconds.
func (r *reader) span(n int64) time.Duration {
	if n > math.MaxInt64/int64(time.Millisecond) {
		r.fail("span out of range")
		return 0
	}
	return time.Duration(n) * time.Millisecond
}

func (r *reader) bounds(of *[priorities]bound) {
	for i := range of {
		of[i] = bound{low: place{r.int(), r.int()}}
	}
}

// decode is the reverse of encode. It leaves out what is in other keys.
func (q *queue) decode(value []byte) error {
	d := read(value)
	q.config.Paused = d.bool()
	q.config.ExpireIn = d.span(d.int())
	q.config.MaxDeliveries = d.small(storage.MaxAttempts)
	q.seq, q.token, q.clock = d.int(), d.int(), d.int()
	q.count[storage.Ready], q.count[storage.Leased], q.count[storage.Dead] = d.int(), d.int(), d.int()
	q.windows, q.due.before, q.due.n = d.int(), d.int(), d.int()
	for _, c := range q.counters() {
		*c = d.int()
	}
	d.bounds(&q.waiting)
	q.expiring, q.ending, q.done, q.dead = bound{}, bound{}, bound{}, bound{}
	if d.format == firstFormat {
		q.outdated = true
		return d.end()
	}
	for _, c := range q.lateCounters() {
		*c = d.int()
	}
	d.config(&q.config)
	q.count[storage.Done], q.retained, q.keys = d.int(), d.int(), d.int()
	q.replacing = replaces{d.bool(), d.string(), d.int()}
	if d.bool() {
		d.bounds(&q.keyed)
		d.bounds(&q.turns)
	}
	return d.end()
}
