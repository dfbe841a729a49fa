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

// watch knows who the primary is. One that is asleep or cut off for long is replaced unasked, and
// then something may be lost too.
type watch struct {
	primary *redistest.Server
	at      time.Time
	asked   bool // for another one, since
}

// look is told who is primary whenever all is well.
func (w *watch) look(r *ring, primary *redistest.Server) *redistest.Server {
	if w.primary != nil && primary != w.primary && !w.asked {
		r.mayLose(time.Since(w.at) + behind)
		r.done["failover that nobody asked for"]++
	}
	*w = watch{primary: primary, at: time.Now()}
	return primary
}

// asking says that a fault asks for another primary, and cares itself for what that loses.
func (w *watch) asking(faults []fault) []fault {
	for i, f := range faults {
		faults[i].do = func() {
			w.asked = true
			f.do()
		}
	}
	return faults
}

// sentinel is a primary with replicas, and three Sentinels.
type sentinel struct {
	set   *redistest.Sentinels
	query string // of URLs
	watch watch
}

func startSentinel(t *testing.T, _ *rand.Rand) place {
	t.Helper()
	return &sentinel{set: redistest.StartReplicas(t, 2, redistest.Proxied())}
}

// startReplicated starts one whose processes wait until the replica has what they are answered.
func startReplicated(t *testing.T, _ *rand.Rand) place {
	t.Helper()
	options := []redistest.Option{redistest.Proxied(), redistest.Config("min-replicas-to-write", "1", "min-replicas-max-lag", "10")}
	return &sentinel{set: redistest.StartReplicas(t, 1, options...), query: "?replicas=1"}
}

func (p *sentinel) name() string { return "sentinel" }
func (p *sentinel) url() string  { return p.set.URL() + p.query }
func (p *sentinel) crowd() int   { return 3 }
func (p *sentinel) mend(r *ring) { p.look(r) }

func (p *sentinel) look(r *ring) *redistest.Server {
	r.Helper()
	p.set.Healthy(r)
	return p.watch.look(r, p.set.Now())
}

func (p *sentinel) faults(r *ring) []fault {
	primary := p.look(r)
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
	primary := p.look(r)
	return p.watch.asking([]fault{
		{"failover asked for", func() {
			until := r.mayLose(behind)
			p.set.Failover(r)
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
			lonely := r.startAt(primary.StraightURL() + p.query)
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
	})
}
