// SPDX-License-Identifier: Apache-2.0

package storagetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/bidemq/bide/storage"
)

// SpreadPrograms runs random programs that change the number of shards while the queue is in use, and compares
// with package memstore what R20 leaves exact: all that concerns one key, or one id without a key. So the model
// is not one queue: it is one for each key and each id. The engine says which records it has claimed, and the
// queues of these have to give the same ones, no other queue any if the engine found too few; every other answer is put together
// from all of them. Each program ends when all records are worked off, so none is lost, doubled or stuck.
//
// The engines are several over the same records, one is enough. Each step is made through one of them, so that
// the others do not know what has changed. It runs 100 programs, or as many as BIDE_PROGRAMS says.
func SpreadPrograms(t *testing.T, engines ...storage.Engine) {
	seed := setting(t, "BIDE_SEED", rand.Uint64())
	count := setting(t, "BIDE_PROGRAMS", 100)
	t.Logf("%d programs of %d steps from BIDE_SEED=%d", count, steps, seed)
	const lanes = 4
	var wg sync.WaitGroup
	failed := make(chan Program, lanes)
	for lane := range uint64(lanes) {
		wg.Go(func() {
			for i := lane; i < count && len(failed) == 0; i += lanes {
				p := GenerateSpread(seed+i, steps)
				if spreadDiffers(t.Context(), engines, p) != "" {
					failed <- p
					return
				}
			}
		})
	}
	wg.Wait()
	if len(failed) == 0 {
		return
	}
	p := shrink(<-failed, func(p Program) bool { return spreadDiffers(t.Context(), engines, p) != "" })
	t.Fatalf("BIDE_SEED=%d: %s\n\nfunc TestRegression(t *testing.T) {\n\tstoragetest.ReplaySpread(t, %s, engines...)\n}",
		seed, spreadDiffers(t.Context(), engines, p), p)
}

// ReplaySpread fails unless engines over the same records answer a program as SpreadPrograms wants it.
func ReplaySpread(t *testing.T, p Program, engines ...storage.Engine) {
	t.Helper()
	if diff := spreadDiffers(t.Context(), engines, p); diff != "" {
		t.Fatal(diff)
	}
}

// GenerateSpread returns the random program of a seed, as Generate does, with other shards now and then. What
// R20 takes out is left out: bounds that are divided over the shards, and a MinBatch of records without a key. So is
// KeyIdle: a successor joins its key when a call finds that the running one has died, and calls find that shard by shard.
// The letters of an id but the last are its key.
func GenerateSpread(seed uint64, steps int) Program {
	g := generator{Rand: rand.New(rand.NewPCG(seed, 1))}
	g.calm = g.IntN(4) == 0
	g.keyed = 2
	keys := []string{"", "", "k", "l", "m"}
	if g.IntN(3) == 0 {
		keys = keys[2:]
	}
	p := Program{{Do: "shards", N: 1 + g.IntN(3)}}
	if g.IntN(3) == 0 {
		p = append(Program{{Do: "configure", Set: "Ordered", N: 1}}, p...)
	}
	for len(p) < steps {
		op := g.op()
		if g.calm {
			g.calmDown(&op)
		}
		switch g.IntN(24) {
		case 0, 1:
			op = Op{Do: "shards", N: 1 + g.IntN(5), After: op.After}
		case 2:
			op = Op{Do: "repair", After: op.After}
		}
		op.After = max(op.After, time.Millisecond) // tokens of two shards are of two instants: R5
		op.Via = g.IntN(4)
		for i := range op.IDs {
			op.IDs[i] = pick(g, keys...) + op.IDs[i][len(op.IDs[i])-1:]
		}
		switch {
		case op.Do == "redrive": // one by one: what died at the same instant has lost its order when it has moved
			op.N, op.IDs = storage.MaxBatch, []string{pick(g, keys...) + g.ids(1)[0]}
		case op.Do == "purge":
			op.N = storage.MaxBatch
		case op.Do == "list" || op.Do == "keys":
			op = Op{Do: "repair", After: op.After}
		case op.Do != "configure":
		case op.Set == "Ordered", op.Set == "KeyIdle", op.Set == "MaxLen", op.Set == "RetainCount", op.Set == "RetainBytes", op.Set == "DeadCount",
			op.Set == "MinBatch" && keys[0] == "":
			op = Op{Do: "configure", Set: pick(g, "MaxPerKey", "KeyLimit"), N: g.IntN(4), After: op.After}
		}
		p = append(p, op)
	}
	return p
}

// spreadDiffers runs a program and says where the engines part from the model, "" if they do not. It compares
// the whole queue after each ten steps, and at the end when all has been worked off.
func spreadDiffers(ctx context.Context, engines []storage.Engine, p Program) string {
	m := newSpreadMachine(engines)
	for i, op := range p {
		diff := m.step(ctx, op)
		if diff == "" && (i+1)%10 == 0 {
			diff = m.compare(ctx)
		}
		if diff != "" {
			return fmt.Sprintf("step %d %s (-model +engine):\n%s", i, op, diff)
		}
	}
	if diff := m.finish(ctx); diff != "" {
		return "at the end (-model +engine):\n" + diff
	}
	return ""
}
