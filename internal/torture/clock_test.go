// SPDX-License-Identifier: Apache-2.0

package torture

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/bidemq/bide/internal/history"
	"github.com/bidemq/bide/internal/redistest"
)

// clock is a single Redis whose clock is not that of the processes, and steps.
type clock struct {
	server *redistest.Server
	off    time.Duration
	most   time.Duration // that it has ever been ahead
}

func startClock(t *testing.T, rnd *rand.Rand) place {
	t.Helper()
	p := &clock{server: redistest.Start(t, redistest.Clock(), redistest.AppendOnly("always"))}
	p.off = []time.Duration{-5 * time.Minute, 0, 5 * time.Minute}[rnd.IntN(3)]
	p.most = p.off
	p.server.Turn(t, p.off)
	return p
}

func (p *clock) name() string { return "clock" }
func (p *clock) url() string  { return p.server.URL() }
func (p *clock) crowd() int   { return 4 }

func (p *clock) faults(r *ring) []fault {
	return []fault{
		{"clock stepped by a little", func() { p.turn(r, time.Duration(r.rnd.IntN(10_000)-5000)*time.Millisecond) }},
		{"clock stepped by minutes", func() { p.turn(r, time.Duration(r.rnd.IntN(600)-300)*time.Second) }},
		{"clock stepped by an hour", func() { p.turn(r, []time.Duration{-time.Hour, time.Hour}[r.rnd.IntN(2)]) }},
		{"server killed", func() {
			p.server.Kill()
			p.server.Restart(r)
		}},
	}
}

func (p *clock) turn(r *ring, by time.Duration) {
	span := history.Span{From: time.Now()}
	p.off += by
	p.most = max(p.most, p.off)
	p.server.Turn(r, p.off)
	span.To = time.Now()
	r.terms.Turns = append(r.terms.Turns, span)
}

// mend makes it as late as it has ever been: what was enqueued then is due then.
func (p *clock) mend(r *ring) { p.turn(r, p.most-p.off) }
