// SPDX-License-Identifier: Apache-2.0

package bidetest

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/storage"
)

// Named is a *bide.Queue of any payload.
type Named interface{ Name() string }

// Enqueued is a message that the client enqueued.
type Enqueued struct {
	At      time.Duration
	Due     time.Duration
	Queue   string
	ID      string
	Outcome storage.Outcome // Refused if there is an error
	Message bide.Message
	Err     error
}

// Settled is the end of one delivery.
type Settled struct {
	At      time.Duration
	Queue   string
	ID      string
	Attempt int
	Verdict storage.Verdict // 0 if the lease was lost before
	Dead    bool            // the message is dead for it: buried, or its attempts or deliveries were spent
	Delay   time.Duration   // of a retry or a release
	Err     error           // what the handler returned
}

// Want is a delivery as a test expects it.
type Want struct {
	At      time.Duration
	Verdict storage.Verdict
	Dead    bool
}

// Acked expects that a handler did its work.
func Acked(at time.Duration) Want { return Want{At: at, Verdict: storage.Ack} }

// Retried expects that a handler failed and that the message is to be tried again.
func Retried(at time.Duration) Want { return Want{At: at, Verdict: storage.Retry} }

// Died expects that a handler failed and that this was the last attempt.
func Died(at time.Duration) Want { return Want{At: at, Verdict: storage.Retry, Dead: true} }

// Released expects that a handler snoozed.
func Released(at time.Duration) Want { return Want{At: at, Verdict: storage.Release} }

// Buried expects that a handler gave the message up.
func Buried(at time.Duration) Want { return Want{At: at, Verdict: storage.Bury, Dead: true} }

// Expired expects that the message was claimed in time and past its expiry when a handler was to
// begin. One that expires while it waits is not delivered at all.
func Expired(at time.Duration) Want { return Want{At: at, Verdict: storage.Expire} }

// LeaseLost expects that the handler's lease was lost before it returned, by a Cancel say.
func LeaseLost(at time.Duration) Want { return Want{At: at} }

// Enqueued lists what was enqueued in a queue, in the order of the answers.
func (b *Bubble) Enqueued(queue Named) []Enqueued {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []Enqueued
	for _, e := range b.enqueued {
		if e.Queue == queue.Name() {
			all = append(all, e)
		}
	}
	return all
}

// Settled lists how the deliveries of a message ended, in order.
func (b *Bubble) Settled(queue Named, id string) []Settled {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []Settled
	for _, s := range b.settled {
		if s.Queue == queue.Name() && s.ID == id {
			all = append(all, s)
		}
	}
	return all
}

// WantEnqueued fails the test unless a message with this id was stored, due at this instant.
func (b *Bubble) WantEnqueued(queue Named, id string, due time.Duration) {
	b.t.Helper()
	var got []string
	for _, e := range b.Enqueued(queue) {
		if e.ID != id {
			continue
		}
		if e.Err == nil && e.Outcome != storage.Duplicate && e.Due == due {
			return
		}
		if e.Err != nil {
			got = append(got, e.Err.Error())
		} else {
			got = append(got, fmt.Sprintf("%s at %s, due at %s", e.Outcome, e.At, e.Due))
		}
	}
	b.t.Errorf("%s %q: got %s, want it enqueued, due at %s", queue.Name(), id, list(got), due)
}

// WantNotEnqueued fails the test if a message with this id was stored.
func (b *Bubble) WantNotEnqueued(queue Named, id string) {
	b.t.Helper()
	for _, e := range b.Enqueued(queue) {
		if e.ID == id && e.Err == nil && e.Outcome != storage.Duplicate {
			b.t.Errorf("%s %q: got it enqueued at %s, due at %s, want nothing", queue.Name(), id, e.At, e.Due)
		}
	}
}

// WantSettled fails the test unless the deliveries of a message ended like this and there were no
// others. Without any it wants that the message was not delivered.
func (b *Bubble) WantSettled(queue Named, id string, want ...Want) {
	b.t.Helper()
	settled := b.Settled(queue, id)
	same := len(settled) == len(want)
	var gots, wants []string
	for i, s := range settled {
		got := Want{At: s.At, Verdict: s.Verdict, Dead: s.Dead}
		same = same && got == want[i]
		gots = append(gots, line(got, s.Err))
	}
	for _, w := range want {
		wants = append(wants, line(w, nil))
	}
	if !same {
		b.t.Errorf("%s %q: got %s, want %s", queue.Name(), id, list(gots), list(wants))
	}
}

func line(w Want, err error) string {
	what := w.Verdict.String()
	if w.Verdict == 0 {
		what = "lease lost"
	}
	if w.Dead {
		what += ", dead"
	}
	if err != nil {
		return fmt.Sprintf("%s at %s (%v)", what, w.At, err)
	}
	return fmt.Sprintf("%s at %s", what, w.At)
}

func list(items []string) string {
	if len(items) == 0 {
		return "nothing"
	}
	return strings.Join(items, ", ")
}

func (b *Bubble) noteEnqueue(queue string, m *bide.Message, r bide.Result) {
	e := Enqueued{At: b.Now(), Queue: queue, ID: r.ID, Outcome: r.Outcome, Message: *m, Err: r.Err}
	if r.Err == nil {
		e.Due = r.Due.Sub(b.begun)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.enqueued = append(b.enqueued, e)
}

func (b *Bubble) noteDone(d *bide.Delivery[[]byte], done bide.Done) {
	s := Settled{
		At: b.Now(), Queue: d.Queue, ID: d.ID, Attempt: d.Attempt,
		Verdict: done.Verdict, Dead: b.isDead(d), Delay: done.Delay, Err: done.Err,
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.settled = append(b.settled, s)
}

// isDead asks the engine, which alone knows when deliveries are spent.
func (b *Bubble) isDead(d *bide.Delivery[[]byte]) bool {
	dead := storage.Filter{State: storage.Dead, ID: d.ID, Desc: true}
	for r, err := range b.Client.Messages(context.Background(), d.Queue, dead) {
		if err != nil {
			b.t.Errorf("looking for %q among the dead: %v", d.ID, err)
			return false
		}
		if r.Seq == d.Record().Seq {
			return true
		}
	}
	return false
}
