// SPDX-License-Identifier: Apache-2.0

package torture

import (
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/bidemq/bide/internal/assert"
)

// set is a place with more than one way to another primary.
type set interface {
	place
	failovers(r *ring) []fault
}

// Failovers, one after the other: no process is started anew, all of them go on within seconds, and
// what is lost lies in the moments before. Where answers wait for the replica, nothing is.
func TestFailovers(t *testing.T) {
	count := 3
	if s := os.Getenv("BIDE_FAILOVERS"); s != "" {
		n, err := strconv.Atoi(s)
		assert.NoError(t, err)
		count = n
	}
	seed := seed(t)
	only := os.Getenv("BIDE_TORTURE_ON")
	for i, start := range []func(*testing.T, *rand.Rand) place{startSentinel, startCluster, startReplicated} {
		name := []string{"sentinel", "cluster", "replicated"}[i]
		if only != "" && only != name {
			continue
		}
		t.Run(name, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 2))
			feature := features[rnd.IntN(len(features))]
			t.Logf("BIDE_SEED=%d BIDE_TORTURE_ON=%s BIDE_FAILOVERS=%d, a queue of the kind %q", seed, name, count, feature.name)
			r := newRing(t, rnd, start(t, rnd))
			r.pace = 1 + min(count/10, 9) // the history of many failovers is long
			configure(t, r.place.url(), feature.edit)
			took := failOver(r, count)
			r.stop()
			report := r.judge(open(t, r.place.url()))
			if name == "replicated" {
				assert.Equal(t, report.Rewound.Lost, 0, "messages that a replica had are lost")
				assert.Equal(t, report.Rewound.Again, 0, "settlements that a replica had are lost")
			}
			slices.Sort(took)
			t.Logf("%d failovers; all processes went on after %s at most, %s in the middle", count, took[len(took)-1], took[len(took)/2])
		})
	}
}

// failOver makes failovers happen, and says how long the processes took to go on after each.
func failOver(r *ring, count int) []time.Duration {
	set, ok := r.place.(set)
	assert.True(r, ok)
	for range r.place.crowd() {
		r.start()
	}
	r.goesOn()
	var took []time.Duration
	for range count {
		all := set.failovers(r)
		f := all[r.rnd.IntN(len(all))]
		r.happen(f)
		took = append(took, r.goesOn().Round(time.Millisecond))
		if testing.Verbose() {
			r.Logf("%s, and all go on after %s", f.name, took[len(took)-1])
		}
	}
	r.place.mend(r)
	return took
}
