// SPDX-License-Identifier: Apache-2.0

package torture

import (
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/internal/redistest"
)

// sample is what is held at an instant.
type sample struct {
	heap        int64 // bytes of this process, after a collection
	resident    int64 // bytes of this process, as the system sees it
	goroutines  int64
	descriptors int64
	store       int64 // bytes of the memory of Redis, or of a directory
}

// sampleEvery is how far samples are apart in a run of some length.
func sampleEvery(long time.Duration) time.Duration { return max(long/60, 250*time.Millisecond) }

// take takes a sample beside what the store holds.
func take(t *testing.T, store int64) sample {
	t.Helper()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	s := sample{heap: int64(m.HeapAlloc), goroutines: int64(runtime.NumGoroutine()), store: store}
	if open, err := os.ReadDir("/proc/self/fd"); err == nil {
		s.descriptors = int64(len(open))
	}
	if text, err := os.ReadFile("/proc/self/statm"); err == nil {
		pages, err := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
		assert.NoError(t, err)
		s.resident = pages * int64(os.Getpagesize())
	}
	return s
}

// serverMemory is what Redis has allocated, in bytes.
func serverMemory(t *testing.T, server *redistest.Server) int64 {
	t.Helper()
	for line := range strings.Lines(server.Do(t, "INFO", "memory")) {
		if n, ok := strings.CutPrefix(strings.TrimSpace(line), "used_memory:"); ok {
			bytes, err := strconv.ParseInt(n, 10, 64)
			assert.NoError(t, err)
			return bytes
		}
	}
	t.Fatal("Redis does not tell its memory")
	return 0
}

// flat compares the last third with the middle one: the first is what warms up. Growth by a quarter,
// and by what a batch, the calls under way on a connection that hangs, and a collection are, is within what a moment makes of it.
func flat(t *testing.T, samples []sample) {
	t.Helper()
	n := len(samples)
	assert.True(t, n >= 9, "too few samples")
	middle := func(some []sample, of func(sample) int64) int64 {
		var values []int64
		for _, s := range some {
			values = append(values, of(s))
		}
		slices.Sort(values)
		return values[len(values)/2]
	}
	for _, c := range []struct {
		name  string
		of    func(sample) int64
		slack int64
	}{
		{"heap, bytes", func(s sample) int64 { return s.heap }, 4 << 20},
		{"resident, bytes", func(s sample) int64 { return s.resident }, 16 << 20},
		{"goroutines", func(s sample) int64 { return s.goroutines }, 40},
		{"descriptors", func(s sample) int64 { return s.descriptors }, 5},
		{"the store, bytes", func(s sample) int64 { return s.store }, 4 << 20},
	} {
		before, after := middle(samples[n/3:2*n/3], c.of), middle(samples[2*n/3:], c.of)
		t.Logf("%s: %d, then %d", c.name, before, after)
		assert.True(t, after <= before+before/4+c.slack, c.name, "grew from", before, "to", after)
	}
}
