// SPDX-License-Identifier: Apache-2.0

package pebblestore

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/memstore"
	"github.com/bidemq/bide/storage"
	"github.com/bidemq/bide/storage/storagetest"
)

const crashSteps = 60

var quiet = slog.New(slog.DiscardHandler)

// R9: after a crash between any two steps of a program, what the calls before it reported is there,
// no more, no less, and in order.
func TestCrashAfterEveryStep(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for i := range uint64(programs(t)) {
		program := storagetest.Generate(seed+i, crashSteps)
		rng := rand.New(rand.NewPCG(seed, i))
		disk := vfs.NewCrashableMem()
		store, err := open("dir", Options{Logger: quiet}, disk)
		assert.NoError(t, err)
		model := storagetest.NewMachine(memstore.New(memstore.Options{}), "crash")
		engine := storagetest.NewMachine(store, "crash")
		for n, op := range program {
			context := fmt.Sprintf("program %d, step %d %s", seed+i, n, op)
			assert.Equal(t, engine.Do(t.Context(), op), model.Do(t.Context(), op), context)
			crashed := disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(101), RNG: rng})
			assert.NoError(t, store.Close(), context)
			disk = crashed
			store, err = open("dir", Options{Logger: quiet}, disk)
			assert.NoError(t, err, context)
			engine.Engine = store
			assert.Equal(t, look(t, engine), look(t, model), context)
			assert.Equal(t, storagetest.RepairAll(t, store, engine.Now, "crash", 7, true), nil, context) // R14
		}
		assert.NoError(t, store.Close())
	}
}

// R9: after a crash at any operation on the file system, in the middle of a call, what was answered
// is there, and the call under way has happened or not.
func TestCrashAtEveryWrite(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for i := range uint64(10 * programs(t)) {
		program := storagetest.Generate(seed+i, crashSteps)
		rng := rand.New(rand.NewPCG(seed, i))
		var crash crash
		disk := vfs.NewCrashableMem()
		hook := errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
			crash.at(op, disk, rng)
			return nil
		}))
		store, err := open("dir", Options{Logger: quiet}, hook)
		assert.NoError(t, err)
		crash.arm(1 + rng.IntN(3*crashSteps))
		answered := runProgram(t, store, program, func() bool { return crash.done() })
		if !crash.done() {
			crash.take(disk, rng)
		}
		assert.NoError(t, store.Close())
		recovered(t, crash.disk, program, max(answered-1, 0), answered+1, fmt.Sprintf("program %d", seed+i))
	}
}

// In relaxed mode a crash leaves the state at an earlier instant, whole.
func TestCrashRelaxed(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for i := range uint64(10 * programs(t)) {
		program := storagetest.Generate(seed+i, crashSteps)
		rng := rand.New(rand.NewPCG(seed, i))
		disk := vfs.NewCrashableMem()
		store, err := open("dir", Options{Logger: quiet, Relaxed: true}, disk)
		assert.NoError(t, err)
		program = program[:1+rng.IntN(len(program))]
		runProgram(t, store, program, func() bool { return false })
		crashed := disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(101), RNG: rng})
		assert.NoError(t, store.Close())
		recovered(t, crashed, program, 0, len(program), fmt.Sprintf("program %d", seed+i))
	}
}

// crash copies a disk as it would be after a crash at some operation.
type crash struct {
	mu   sync.Mutex
	left int // operations until then, 0 if it is not armed
	disk *vfs.MemFS
}

func (c *crash) arm(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left = n
}

func (c *crash) at(op errorfs.Op, disk *vfs.MemFS, rng *rand.Rand) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left == 0 || op.Kind.ReadOrWrite() != errorfs.OpIsWrite {
		return
	}
	if c.left--; c.left == 0 {
		c.disk = disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(101), RNG: rng})
	}
}

func (c *crash) take(disk *vfs.MemFS, rng *rand.Rand) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left = 0
	if c.disk == nil {
		c.disk = disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(101), RNG: rng})
	}
}

func (c *crash) done() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.disk != nil
}

// runProgram runs a program until stop says so, and returns the number of steps answered by then.
func runProgram(t *testing.T, store storage.Engine, p storagetest.Program, stop func() bool) int {
	t.Helper()
	engine := storagetest.NewMachine(store, "crash")
	for n, op := range p {
		engine.Do(t.Context(), op)
		if stop() {
			return n
		}
	}
	return len(p)
}

// recovered fails unless a disk holds what a program has done after least to most of its steps.
func recovered(t *testing.T, disk vfs.FS, p storagetest.Program, least, most int, context string) {
	t.Helper()
	store, err := open("dir", Options{Logger: quiet}, disk)
	assert.NoError(t, err, context)
	defer func() { assert.NoError(t, store.Close()) }()
	most = min(most, len(p))
	now := storagetest.NewMachine(nil, "crash").Now
	for _, op := range p[:most] {
		now = now.Add(op.After)
	}
	engine := storagetest.NewMachine(store, "crash")
	engine.Now = now
	got := look(t, engine)
	assert.Equal(t, storagetest.RepairAll(t, store, now, "crash", 7, true), nil, context) // R14
	diff := ""
	for n := most; n >= least; n-- {
		model := storagetest.NewMachine(memstore.New(memstore.Options{}), "crash")
		for _, op := range p[:n] {
			model.Do(t.Context(), op)
		}
		model.Now = now
		if d := assert.Diff(got, look(t, model)); d == "" {
			return
		} else if n == max(most-1, least) {
			diff = d
		}
	}
	t.Fatalf("%s: the state is that of none of steps %d to %d, from one of them it differs so (-want +got):\n%s", context, least, most, diff)
}

// look views a queue, but for what time alone may count earlier or later.
func look(t *testing.T, m *storagetest.Machine) storagetest.View {
	t.Helper()
	v, err := m.View(t.Context())
	assert.NoError(t, err)
	return v
}

// programs is how many programs the crash tests run.
func programs(t *testing.T) int {
	t.Helper()
	if testing.Short() {
		return 2
	}
	return 10
}
