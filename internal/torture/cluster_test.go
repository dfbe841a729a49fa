// SPDX-License-Identifier: Apache-2.0

package torture

import (
	"math/rand/v2"
	"testing"

	"github.com/bidemq/bide/internal/redistest"
)

// cluster is three primaries with a replica each.
type cluster struct {
	set   *redistest.Cluster
	slot  int  // of the queue
	lost  bool // a primary, for good
	watch watch
}

func startCluster(t *testing.T, _ *rand.Rand) place {
	t.Helper()
	p := &cluster{set: redistest.StartReplicatedCluster(t, redistest.Proxied())}
	p.slot = p.set.Slot(t, "bide:{default/"+queue+"/0}:meta")
	return p
}

func (p *cluster) name() string { return "cluster" }
func (p *cluster) url() string  { return p.set.URL() }
func (p *cluster) crowd() int   { return 3 }
func (p *cluster) mend(r *ring) { p.look(r) }

func (p *cluster) look(r *ring) *redistest.Server {
	r.Helper()
	p.set.Healthy(r)
	return p.watch.look(r, p.set.Owner(p.slot))
}

func (p *cluster) faults(r *ring) []fault {
	primary := p.look(r)
	all := []fault{
		{"slot moved", func() { p.move(r) }},
		{"slot moved and back", func() {
			p.move(r)
			r.wait(r.upTo(10, 300))
			p.set.Migrate(r, p.slot, primary)
		}},
	}
	if replica := p.set.ReplicaOf(primary); replica != nil && !p.lost {
		all = append(all, fault{"primary lost for good", func() {
			p.lost = true
			primary.Kill()
			r.mayLose(behind)
			p.set.TakenOver(r, p.slot, replica)
		}})
	}
	all = append(p.watch.asking(all), p.failovers(r)...)
	return append(append(all, r.ofServer(primary)...), r.ofNetwork(primary.Proxy)...)
}

// move moves the slot of the queue to another primary.
func (p *cluster) move(r *ring) {
	r.Helper()
	owner := p.set.Owner(p.slot)
	for _, n := range p.set.Primaries() {
		if n != owner {
			p.set.Migrate(r, p.slot, n)
			return
		}
	}
}

// failovers are the ways to another primary of the queue. None is lost by one that the primary agrees
// with; of the others as of those with Sentinel.
func (p *cluster) failovers(r *ring) []fault {
	primary := p.look(r)
	replica := p.set.ReplicaOf(primary)
	if !p.lost {
		redistest.Until(r, "the primary has a replica", func() bool {
			replica = p.set.ReplicaOf(primary)
			return replica != nil
		})
	}
	if replica == nil { // as one that was lost for good has left it
		return p.watch.asking([]fault{{"slot moved", func() { p.move(r) }}})
	}
	return p.watch.asking([]fault{
		{"failover agreed upon", func() { p.set.Promote(r, replica) }},
		{"failover forced", func() {
			until := r.mayLose(behind)
			p.set.Promote(r, replica, "FORCE")
			p.set.Healthy(r)
			until()
		}},
		{"failover by takeover", func() {
			until := r.mayLose(behind)
			p.set.Promote(r, replica, "TAKEOVER")
			p.set.Healthy(r)
			until()
		}},
		{"primary killed", func() {
			primary.Kill()
			r.mayLose(behind)
			p.set.TakenOver(r, p.slot, replica)
			primary.Restart(r)
		}},
		{"primary stopped, and back as if nothing was", func() {
			until := r.mayLose(behind)
			primary.Stop(r)
			p.set.TakenOver(r, p.slot, replica)
			primary.Continue(r)
			p.set.Healthy(r)
			until()
		}},
	})
}
