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

// Each structure that Redis keeps of a queue is lost in turn while processes go on, or is as it was some time ago,
// and repaired. Until it is repaired, what a key has leased may not be known, and its order not kept. Two are what Repair
// works from, so they are not lost: records, and meta, which has the configuration. Where these are as they were, what was
// answered since may be gone.
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
		name := key[strings.LastIndex(key, ":")+1:]
		damage := func(do func()) func() {
			return func() {
				hole := history.Span{From: time.Now()}
				do()
				redistest.Until(t, "repair finds nothing any more", func() bool {
					return len(storagetest.RepairAll(t, store, time.Time{}, queue, 100, false)) == 0
				})
				hole.To = time.Now()
				r.terms.Holes = append(r.terms.Holes, hole)
			}
		}
		truth := name == "records" || name == "meta"
		if !truth {
			r.happen(fault{name + " lost", damage(func() { server.Do(t, "DEL", key) })})
			r.goesOn()
		}
		from := time.Now()
		server.Do(t, "DEL", "before")
		server.Do(t, "COPY", key, "before")
		r.wait(r.upTo(100, 400))
		r.happen(fault{name + " rolled back", damage(func() {
			server.Do(t, "EVAL", "if redis.call('COPY', KEYS[2], KEYS[1], 'REPLACE') == 0 then redis.call('DEL', KEYS[1]) end", "2", key, "before")
		})})
		if truth {
			r.terms.Rewinds = append(r.terms.Rewinds, history.Span{From: from, To: time.Now()})
		}
		r.goesOn()
	}
	r.stop()
	r.judge(store)
}
