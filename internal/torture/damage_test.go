// SPDX-License-Identifier: Apache-2.0

package torture

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/bidemq/bide/internal/history"
	"github.com/bidemq/bide/internal/redistest"
	"github.com/bidemq/bide/redisstore"
	"github.com/bidemq/bide/storage/storagetest"
)

// Each structure that Redis keeps of a queue is lost in turn while processes go on, and repaired. Two
// are what Repair works from: records, and meta, which has the configuration. Until it is repaired, what
// a key has leased may not be known, and its order not kept.
func TestLostStructures(t *testing.T) {
	seed := seed(t)
	rnd := rand.New(rand.NewPCG(seed, 4))
	feature := features[rnd.IntN(len(features))]
	t.Logf("BIDE_SEED=%d, a queue of the kind %q", seed, feature.name)
	server := redistest.Start(t, redistest.AppendOnly("everysec"))
	r := newRing(t, rnd, &one{server: server, fsync: "everysec"})
	configure(t, server.URL(), feature.edit)
	store := open(t, server.URL())
	for range 3 {
		r.start()
	}
	r.goesOn()
	for _, key := range redisstore.QueueKeys("", queue) {
		if strings.HasSuffix(key, ":records") || strings.HasSuffix(key, ":meta") {
			continue
		}
		r.happen(fault{key[strings.LastIndex(key, ":")+1:] + " lost", func() {
			hole := history.Span{From: time.Now()}
			server.Do(t, "DEL", key)
			redistest.Until(t, "repair finds nothing any more", func() bool {
				return len(storagetest.RepairAll(t, store, time.Time{}, queue, 100, false)) == 0
			})
			hole.To = time.Now()
			r.terms.Holes = append(r.terms.Holes, hole)
		}})
		r.goesOn()
	}
	r.stop()
	r.judge(store)
}
