// SPDX-License-Identifier: Apache-2.0

package storagetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/memstore"
	"github.com/bidemq/bide/storage"
)

// steps is the length of a random program.
const steps = 60

// Programs runs random programs on an engine and on package memstore and compares each answer. It
// runs 2,000 of them, or as many as BIDE_PROGRAMS says, from a fresh seed, or from BIDE_SEED. A
// program that answers differently is shortened and printed as a test.
func Programs(t *testing.T, open Open) {
	seed := setting(t, "BIDE_SEED", rand.Uint64())
	count := setting(t, "BIDE_PROGRAMS", 2000)
	t.Logf("%d programs of %d steps from BIDE_SEED=%d", count, steps, seed)
	engine := open(t)
	cover := newCoverage()
	defer func() { t.Logf("steps by rule and by the state of what they met:\n%s", cover) }()

	const lanes = 8
	var wg sync.WaitGroup
	failed := make(chan Program, lanes)
	for lane := range uint64(lanes) {
		wg.Go(func() {
			for i := lane; i < count && len(failed) == 0; i += lanes {
				p := Generate(seed+i, steps)
				if differs(t.Context(), engine, p, 10, cover) != "" {
					failed <- p
					return
				}
			}
		})
	}
	wg.Wait()
	if len(failed) == 0 {
		if count >= 2000 {
			cover.complete(t)
		}
		return
	}
	p := shrink(<-failed, func(p Program) bool { return differs(t.Context(), engine, p, 1, nil) != "" })
	t.Fatalf("BIDE_SEED=%d: %s\n\nfunc TestRegression(t *testing.T) {\n\tstoragetest.Replay(t, open, %s)\n}",
		seed, differs(t.Context(), engine, p, 1, nil), p)
}

// Replay fails unless an engine answers a program as package memstore does.
func Replay(t *testing.T, open Open, p Program) {
	t.Helper()
	if diff := differs(t.Context(), open(t), p, 1, nil); diff != "" {
		t.Fatal(diff)
	}
}

// differs runs a program on the engine and on the model and says where they part, "" if they do
// not. It compares the whole queue after each look steps and at the end.
func differs(ctx context.Context, engine storage.Engine, p Program, look int, cover *coverage) string {
	model := memstore.New(memstore.Options{})
	queue := NewQueueName()
	got, want := NewMachine(engine, queue), NewMachine(model, queue)
	for i, op := range p {
		if cover != nil {
			cover.note(ctx, want, op)
		}
		w, g := want.Do(ctx, op), got.Do(ctx, op)
		if diff := assert.Diff(g, w); diff != "" {
			return fmt.Sprintf("step %d %s answers (-model +engine):\n%s", i, op, diff)
		}
		if (i+1)%look != 0 && i != len(p)-1 {
			continue
		}
		w, g = view(ctx, want), view(ctx, got)
		if diff := assert.Diff(g, w); diff != "" {
			return fmt.Sprintf("after step %d %s the queue is (-model +engine):\n%s", i, op, diff)
		}
	}
	r, err := engine.Repair(ctx, got.Now, queue, storage.Repair{DryRun: true, Limit: storage.MaxBatch})
	if err != nil || len(r.Fixes) > 0 {
		return fmt.Sprintf("at the end Repair says %v, %v", r.Fixes, err) // R14
	}
	return ""
}

func view(ctx context.Context, m *Machine) Answer {
	v, err := m.View(ctx)
	return Answer{Value: v, Err: category(err)}
}

// shrink drops steps from a failing program while it still fails.
func shrink(p Program, fails func(Program) bool) Program {
	for size := len(p) / 2; size > 0; {
		shorter := false
		for at := 0; at+size <= len(p); {
			candidate := append(append(Program{}, p[:at]...), p[at+size:]...)
			if fails(candidate) {
				p, shorter = candidate, true
			} else {
				at += size
			}
		}
		if !shorter || size > len(p) {
			size /= 2
		}
	}
	return p
}

func setting(t *testing.T, name string, otherwise uint64) uint64 {
	s := os.Getenv(name)
	if s == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(s, 10, 64)
	assert.NoError(t, err, name)
	return n
}
