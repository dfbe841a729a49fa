// SPDX-License-Identifier: Apache-2.0

package torture

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/bidemq/bide/internal/redistest"
)

// behind is how far a replica may be behind its primary, at most.
const behind = time.Second

// sentinel is a primary with two replicas, and three Sentinels.
type sentinel struct{ set *redistest.Sentinels }

func startSentinel(t *testing.T, _ *rand.Rand) place {
	t.Helper()
	return &sentinel{redistest.StartReplicas(t, 2, redistest.Proxied())}
}

func (p *sentinel) name() string { return "sentinel" }
func (p *sentinel) url() string  { return p.set.URL() }
func (p *sentinel) crowd() int   { return 3 }
func (p *sentinel) mend(r *ring) { p.set.Healthy(r) }

func (p *sentinel) faults(r *ring) []fault {
	p.set.Healthy(r)
	primary := p.set.Now()
	all := append(r.ofServer(primary), r.ofNetwork(primary.Proxy)...)
	all = append(all, fault{"replica killed", func() {
		for _, n := range p.set.Nodes {
			if n != primary {
				n.Kill()
				r.wait(r.upTo(10, 500))
				n.Follow(r, primary)
				return
			}
		}
	}})
	return append(all, p.failovers(r)...)
}

// failovers are the ways to another primary. Redis replicates behind its answers, so that what the
// old one has answered in its last moments may be lost.
func (p *sentinel) failovers(r *ring) []fault {
	p.set.Healthy(r)
	primary := p.set.Now()
	return []fault{
		{"failover asked for", func() {
			until := r.mayLose(behind)
			p.set.Failover(r)
			p.set.Changed(r, primary)
			p.set.Healthy(r)
			until()
		}},
		{"primary killed", func() {
			primary.Kill()
			r.mayLose(behind)
			primary.Follow(r, p.set.Changed(r, primary))
		}},
		{"primary stopped, and back as if nothing was", func() {
			until := r.mayLose(behind)
			primary.Stop(r)
			p.set.Changed(r, primary)
			primary.Continue(r)
			p.set.Healthy(r)
			until()
		}},
		{"primary cut off with a producer", func() {
			lonely := r.startAt(primary.StraightURL())
			r.wait(300 * time.Millisecond)
			until := r.mayLose(behind)
			primary.Proxy.Hold()
			p.set.Changed(r, primary)
			r.wait(r.upTo(100, 1000))
			primary.Proxy.Release()
			p.set.Healthy(r)
			r.kill(lonely)
			until()
		}},
	}
}
