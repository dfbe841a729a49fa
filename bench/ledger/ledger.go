// SPDX-License-Identifier: Apache-2.0

// Package ledger keeps the books of a run: which messages were sent, and how often and when each of
// them came. It stands outside of the systems that it judges and believes none of their counts.
package ledger

import (
	"slices"
	"sync/atomic"
	"time"
)

// Ledger of one run. Its methods may be called from many goroutines.
type Ledger struct {
	size    int // of bodies
	next    atomic.Int64
	seen    []atomic.Uint32 // deliveries, by index
	lags    []int64         // of the first delivery in nanoseconds, by index
	came    atomic.Int64    // messages that came at least once
	doubled atomic.Int64    // deliveries beyond the first
	early   atomic.Int64    // deliveries before the due time
	foreign atomic.Int64    // bodies that were never sent
}

// New returns a ledger with room for that many messages with bodies of a size, at least Least.
func New(room, size int) *Ledger {
	return &Ledger{size: size, seen: make([]atomic.Uint32, room), lags: make([]int64, room)}
}

// Body is that of the message with an index.
func (l *Ledger) Body(index int, due time.Time) []byte { return Body(l.size, index, due) }

// Size of the bodies in bytes.
func (l *Ledger) Size() int { return l.size }

// Reserve takes the next n indices, which the caller is going to send. It returns the first of them,
// and false if there is no room left.
func (l *Ledger) Reserve(n int) (first int, ok bool) {
	end := l.next.Add(int64(n))
	if end > int64(len(l.seen)) {
		l.next.Add(-int64(n))
		return 0, false
	}
	return int(end) - n, true
}

// Free is how many indices are left.
func (l *Ledger) Free() int { return len(l.seen) - l.Sent() }

// Return gives back the last n indices that were taken, which were not sent.
func (l *Ledger) Return(n int) { l.next.Add(-int64(n)) }

// Sent is how many indices were taken.
func (l *Ledger) Sent() int { return int(l.next.Load()) }

// Came is how many messages came at least once.
func (l *Ledger) Came() int { return int(l.came.Load()) }

// Deliver enters one delivery, which began at an instant.
func (l *Ledger) Deliver(body []byte, at time.Time) {
	index, due, err := parse(body, l.size)
	if err != nil {
		l.foreign.Add(1)
		return
	}
	l.Enter(index, at.UnixNano()-due)
}

// Enter enters one delivery whose body was read elsewhere, and how long after the due time it began,
// in nanoseconds.
func (l *Ledger) Enter(index int, lag int64) {
	if index < 0 || index >= l.Sent() {
		l.foreign.Add(1)
		return
	}
	if lag < 0 {
		l.early.Add(1)
	}
	if l.seen[index].Add(1) > 1 {
		l.doubled.Add(1)
		return
	}
	l.lags[index] = lag
	l.came.Add(1)
}

// Faults of a run.
type Faults struct {
	Lost    int // messages that never came
	Doubled int // deliveries beyond the first of a message
	Early   int // deliveries before the due time
	Foreign int // deliveries of what was never sent
}

// Faults counts what went wrong so far; what has not come yet is lost. No handler may be running.
func (l *Ledger) Faults() Faults {
	return Faults{
		Lost:    l.Sent() - l.Came(),
		Doubled: int(l.doubled.Load()),
		Early:   int(l.early.Load()),
		Foreign: int(l.foreign.Load()),
	}
}

// Lags are the times from due to delivery of all messages that came, shortest first; negative ones
// came early. No handler may be running.
func (l *Ledger) Lags() []time.Duration {
	lags := make([]time.Duration, 0, l.Came())
	for i := range l.seen[:l.Sent()] {
		if l.seen[i].Load() > 0 {
			lags = append(lags, time.Duration(l.lags[i]))
		}
	}
	slices.Sort(lags)
	return lags
}
