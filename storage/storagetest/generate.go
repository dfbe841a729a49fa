// SPDX-License-Identifier: Apache-2.0

package storagetest

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/bidemq/bide/storage"
)

// Generate returns the random program of a seed. It uses few ids and few durations, so that its
// steps meet: leases end when records are due, ids come back in every state. One program in three
// leaves keys, bounds and retention alone, as most queues do; half of those are calm, so that what an
// engine does in a shorter way for ordinary calls meets what it does not. One in ten is a drain, where claims
// bring many records at once and each call is about some of them.
func Generate(seed uint64, steps int) Program {
	g := generator{Rand: rand.New(rand.NewPCG(seed, 0))}
	g.plain = g.IntN(3) == 0
	g.calm = g.plain && g.IntN(2) == 0
	g.drain = !g.plain && g.IntN(6) == 0
	if g.drain {
		g.plain = g.IntN(4) > 0 // else the queue gets keys and bounds while it is drained
	}
	g.keyed = 1 + g.IntN(3)
	p := make(Program, steps)
	for i := range p {
		if p[i] = g.op(); g.calm {
			g.calmDown(&p[i])
		}
		if g.drain {
			g.enlarge(&p[i])
		}
	}
	if g.drain {
		return p
	}
	if !g.plain && g.IntN(3) == 0 {
		p[0] = Op{Do: "configure", Set: "Ordered", N: 1}
	}
	if !g.plain && g.IntN(3) == 0 {
		p[1] = Op{Do: "configure", Set: "RetainCount", N: 20}
	}
	return p
}

type generator struct {
	*rand.Rand
	plain bool // without keys and what is made for them
	calm  bool // most records are new, of one priority, and acknowledged in time
	drain bool // claims bring many records
	keyed int  // one record in so many has a key
}

// key is one of few keys, or none.
func (g generator) key() string {
	if g.plain {
		return ""
	}
	return sometimes(g, g.keyed, pick(g, "k", "l", "m"))
}

// configure changes one of the fields that are about keys, bounds and retention.
func (g generator) configure() Op {
	op := Op{Do: "configure"}
	switch op.Set = pick(g, "Ordered", "KeyLimit", "KeyLimit", "MinBatch", "MinBatch", "KeyIdle", "MaxLen", "MaxLen", "MaxPerKey", "MaxPerKey",
		"Overflow", "Overflow", "RetainFor", "RetainCount", "RetainBytes", "DeadFor", "DeadCount", "TellDead"); op.Set {
	case "KeyIdle", "RetainFor", "DeadFor":
		op.Delay = pick[time.Duration](g, 0, 20, 50, 200) * time.Millisecond
	case "MinBatch":
		if op.N = pick(g, 0, 2, 2, 3); op.N > 0 {
			op.Delay = pick[time.Duration](g, 1, 10, 50) * time.Millisecond
		}
	case "RetainBytes":
		op.N = pick(g, 0, 20, 60)
	case "Ordered", "Overflow", "TellDead":
		op.N = pick(g, 0, 1, 1)
	default:
		op.N = pick(g, 0, 1, 2, 3, 5)
	}
	return op
}

// scope narrows a claim now and then.
func (g generator) scope(op *Op) {
	if g.plain {
		return
	}
	op.Group = g.IntN(3) == 0
	switch g.IntN(8) {
	case 0:
		op.Keys = []string{pick(g, "", "k", "l")}
	case 1:
		op.Keys = []string{"k", pick(g, "", "m")}
	case 2:
		op.Except = []string{pick(g, "", "k", "l")}
	}
}

func pick[T any](g generator, of ...T) T { return of[g.IntN(len(of))] }

// sometimes returns v in one of n cases, else the zero value.
func sometimes[T any](g generator, n int, v T) (zero T) {
	if g.IntN(n) == 0 {
		return v
	}
	return zero
}

func (g generator) ids(most int) []string {
	ids := make([]string, 1+g.IntN(most))
	for i := range ids {
		ids[i] = pick(g, "a", "b", "c", "d")
	}
	return ids
}

func (g generator) span() time.Duration {
	return pick[time.Duration](g, 0, 1, 10, 10, 20, 50, 100) * time.Millisecond
}

// bound is the end of a range, none in most cases.
func (g generator) bound() time.Duration {
	return sometimes(g, 3, pick[time.Duration](g, -100, -10, -1, 1, 10, 50)*time.Millisecond)
}

func (g generator) back() []int {
	back := make([]int, 1+g.IntN(3))
	for i := range back {
		back[i] = g.IntN(6)
	}
	return back
}

// calmDown makes a step an ordinary one, in most cases.
func (g generator) calmDown(op *Op) {
	if g.IntN(12) == 0 {
		return
	}
	switch op.Do {
	case "enqueue":
		for i := range op.IDs {
			op.IDs[i] = fmt.Sprint(g.IntN(1000))
		}
		op.Prio, op.ExpireIn, op.DedupFor = 3, 0, 0
	case "claim":
		op.N, op.Lease = 1+g.IntN(8), pick[time.Duration](g, 200, 500, 1000)*time.Millisecond
	case "ack", "retry", "return", "bury", "expire":
		op.Do, op.Delay, op.Back = "ack", 0, []int{0, 1, 2}[:1+g.IntN(3)]
	case "edit", "purge", "queueExpiry", "pause":
		*op = Op{Do: "resume", After: op.After}
	}
}

// enlarge makes a step one of a drain: of the records of a claim, most of which are alike, some are settled,
// extended, canceled, edited, replaced or left to end.
func (g generator) enlarge(op *Op) {
	op.After = sometimes(g, 4, op.After)
	op.Key, op.Keys, op.Except = sometimes(g, 8, op.Key), nil, nil
	for i := range op.IDs {
		op.IDs[i] = fmt.Sprint(g.IntN(drained))
	}
	switch op.Do {
	case "enqueue":
		for range g.IntN(drained) {
			op.IDs = append(op.IDs, fmt.Sprint(g.IntN(drained)))
		}
		op.Prio, op.ExpireIn, op.DedupFor = sometimes(g, 12, op.Prio), sometimes(g, 8, op.ExpireIn), sometimes(g, 4, op.DedupFor)
		op.Delay = sometimes(g, 4, op.Delay)
	case "edit":
		op.Prio = sometimes(g, 4, op.Prio)
	case "claim":
		op.N, op.Bytes, op.Group = 1+g.IntN(drained), 0, false
		op.Lease = pick[time.Duration](g, 10, 50, 200, 1000) * time.Millisecond
	case "ack", "retry", "release", "return", "bury", "expire", "extend":
		op.Back = make([]int, 1+g.IntN(drained/2))
		for i := range op.Back {
			op.Back[i] = g.IntN(drained)
		}
	case "purge", "redrive", "list":
		op.N = 1 + g.IntN(drained/2)
	case "configure", "pause", "queueExpiry":
		if g.IntN(3) > 0 {
			*op = Op{Do: "resume", After: op.After}
		}
	}
}

// drained is the number of ids in a drain.
const drained = 90

func (g generator) op() Op {
	op := Op{After: sometimes(g, 2, pick[time.Duration](g, 1, 5, 10, 10, 20, 50, 200)*time.Millisecond)}
	switch n := g.IntN(100); {
	case n < 30:
		op.Do, op.IDs, op.Prio, op.Key = "enqueue", g.ids(pick(g, 3, 3, 12)), sometimes(g, 4, g.IntN(10)), g.key()
		op.Delay = sometimes(g, 2, pick[time.Duration](g, -1, -20, 1, 10, 20, 50, 100)*time.Millisecond)
		op.OnLive = pick(g, storage.Keep, storage.Keep, storage.Replace, storage.Rerun)
		op.MaxAttempts = pick(g, 0, 1, 2, 3)
		op.ExpireIn = sometimes(g, 4, pick[time.Duration](g, 1, 10, 20, 50, 100)*time.Millisecond)
		op.DedupFor = sometimes(g, 4, pick[time.Duration](g, 10, 50)*time.Millisecond)
	case n < 52:
		op.Do, op.N, op.Lease = "claim", 1+g.IntN(3), pick[time.Duration](g, 1, 10, 20, 50, 100)*time.Millisecond
		op.Bytes = sometimes(g, 4, pick(g, 1, 40, 60))
		g.scope(&op)
	case n < 72:
		op.Do, op.Back = pick(g, "ack", "ack", "retry", "retry", "release", "return", "bury", "expire"), g.back()
		if op.Do == "retry" || op.Do == "release" {
			op.Delay = g.span()
		}
	case n < 76:
		op.Do, op.Back, op.Lease = "extend", g.back(), pick[time.Duration](g, 1, 10, 50, 100)*time.Millisecond
	case n < 80:
		op.Do, op.IDs = pick(g, "cancel", "cancelRunning"), g.ids(1)
	case n < 86:
		op.Do, op.IDs, op.Delay = "reschedule", g.ids(1), pick[time.Duration](g, -50, -1, 0, 1, 10, 50)*time.Millisecond
	case n < 88:
		op.Do, op.IDs, op.Prio = "edit", g.ids(1), g.IntN(10)
	case n < 90 && !g.plain:
		switch g.IntN(6) {
		case 0:
			op.Do, op.Key, op.N = "keys", sometimes(g, 2, "k"), 1+g.IntN(3)
		case 1:
			op.Do = "told"
		default:
			after := op.After
			op = g.configure()
			op.After = after
		}
	case n < 90:
		op.Do = pick(g, "pause", "pause", "resume", "resume", "resume")
	case n < 91 && g.IntN(3) > 0:
		op.Do = pick(g, "pause", "pause", "resume", "resume", "resume")
	case n < 91:
		op.Do, op.N = "deliveries", pick(g, 0, 0, 2, 3)
	case n < 92:
		op.Do, op.ExpireIn = "queueExpiry", pick[time.Duration](g, 0, 0, 20, 100)*time.Millisecond
	case n < 94:
		op.Do, op.State, op.N = "purge", pick(g, storage.Delayed, storage.Ready, storage.Dead, storage.Done), 1+g.IntN(3)
		op.Key, op.Desc, op.From, op.To = sometimes(g, 3, "k"), g.IntN(2) == 0, g.bound(), g.bound()
	case n < 96:
		op.Do, op.N, op.Desc, op.From, op.To = "redrive", 1+g.IntN(3), g.IntN(2) == 0, g.bound(), g.bound()
		op.IDs = sometimes(g, 2, g.ids(1))
	case n < 98:
		op.Do, op.IDs = "get", g.ids(1)
	default:
		op.Do, op.State, op.N, op.Desc = "list", pick(g, storage.Delayed, storage.Ready, storage.Leased, storage.Dead, storage.Done), 1+g.IntN(4), g.IntN(2) == 0
		op.Key, op.From, op.To = sometimes(g, 3, "k"), g.bound(), g.bound()
	}
	return op
}
