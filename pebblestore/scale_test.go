// SPDX-License-Identifier: Apache-2.0

package pebblestore

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/storage"
)

// scaleVariable says how many delayed messages TestScale has, and measures time as well.
const scaleVariable = "BIDE_SCALE"

const scaleChild = "BIDE_SCALE_DIRECTORY"

// What calls read does not grow with the number of waiting messages: with a hundred times as many,
// each reads at most twice as many blocks, and a few more for the depth of the tables.
func TestScale(t *testing.T) {
	if dir := os.Getenv(scaleChild); dir != "" {
		holdScale(t, dir)
		return
	}
	few, many := 1_000, 100_000
	if testing.Short() {
		many = 20_000
	}
	if n, err := strconv.Atoi(os.Getenv(scaleVariable)); err == nil {
		few, many = 10_000, n
	}
	little, much := scale(t, few), scale(t, many)
	for _, op := range little.order {
		a, b := little.ops[op], much.ops[op]
		t.Logf("%-8s %8.2f blocks %10v with %d, %8.2f blocks %10v with %d", op, a.blocks, a.took, few, b.blocks, b.took, many)
		assert.True(t, b.blocks <= 2*a.blocks+8, op, " reads ", b.blocks, " blocks, with few messages ", a.blocks)
	}
	if os.Getenv(scaleVariable) != "" {
		reopen(t, many)
	}
}

type cost struct {
	blocks float64 // read, from the cache or from the disk
	took   time.Duration
}

type costs struct {
	order []string
	ops   map[string]cost
}

// scale measures calls beside so many messages that are not due.
func scale(t *testing.T, n int) costs {
	t.Helper()
	s, err := Open(t.TempDir(), Options{Relaxed: true, Logger: quiet})
	assert.NoError(t, err)
	defer func() { assert.NoError(t, s.Close()) }()
	now := time.UnixMilli(1_700_000_000_000)
	fillDelayed(t, s, now, n)
	assert.NoError(t, s.db.Compact(t.Context(), []byte{0}, []byte{255}, true))

	c := costs{ops: map[string]cost{}}
	measure := func(op string, times int, do func(i int)) {
		before, began := blocks(s), time.Now()
		for i := range times {
			do(i)
		}
		c.order = append(c.order, op)
		c.ops[op] = cost{float64(blocks(s)-before) / float64(times), time.Since(began) / time.Duration(times)}
	}
	measure("enqueue", 100, func(i int) {
		_, err := s.Enqueue(t.Context(), now, "q", []storage.Record{{ID: fmt.Sprintf("due %d", i), Body: []byte("body")}})
		assert.NoError(t, err)
	})
	var held []storage.Record
	measure("claim", 100, func(int) {
		got, err := s.Claim(t.Context(), now, storage.Claim{Queue: "q", Limit: 1, Lease: time.Minute})
		assert.NoError(t, err)
		assert.Equal(t, len(got.Records), 1)
		held = append(held, got.Records...)
	})
	measure("settle", 100, func(i int) {
		lost, err := s.Settle(t.Context(), now, []storage.Settlement{{Receipt: held[i].Receipt("q"), Verdict: storage.Ack}})
		assert.NoError(t, err)
		assert.Equal(t, lost, nil)
	})
	measure("get", 100, func(i int) {
		_, err := s.Get(t.Context(), now, "q", delayedID(i*(n/100)))
		assert.NoError(t, err)
	})
	measure("cancel", 100, func(i int) {
		assert.NoError(t, s.Cancel(t.Context(), now, "q", delayedID(i*(n/100)), false))
	})
	measure("list", 10, func(i int) {
		f := storage.Filter{State: storage.Delayed, Limit: 100, From: now.Add(time.Hour + time.Duration(i*(n/10))*time.Millisecond)}
		page, err := s.List(t.Context(), now, "q", f)
		assert.NoError(t, err)
		assert.True(t, len(page.Records) > 50, len(page.Records))
	})
	measure("stats", 100, func(int) {
		st, err := s.Stats(t.Context(), now, "q")
		assert.NoError(t, err)
		assert.Equal(t, st.Delayed, int64(n-100))
	})
	after := ""
	measure("repair", 10, func(int) {
		r, err := s.Repair(t.Context(), now, "q", storage.Repair{Limit: 50, After: after})
		assert.NoError(t, err)
		assert.Equal(t, []any{r.Checked, r.Fixes}, []any{50, []storage.Fix(nil)})
		after = r.Next
	})
	measure("purge", 10, func(int) {
		b, err := s.Purge(t.Context(), now, "q", storage.Filter{State: storage.Delayed, Limit: 50})
		assert.NoError(t, err)
		assert.Equal(t, []any{b.Count, b.More}, []any{50, true})
	})
	return c
}

func blocks(s *Store) int64 {
	m := s.db.Metrics()
	return m.BlockCache.Hits + m.BlockCache.Misses
}

func delayedID(i int) string { return fmt.Sprintf("order %d", i) }

// fillDelayed enqueues messages that are due an hour later, a millisecond apart, in no order of ids.
func fillDelayed(tb testing.TB, s *Store, now time.Time, n int) {
	tb.Helper()
	recs := make([]storage.Record, 1000)
	for from := 0; from < n; from += len(recs) {
		recs = recs[:min(len(recs), n-from)]
		for i := range recs {
			at := from + i
			recs[i] = storage.Record{ID: delayedID(at), Body: []byte("0123456789"), Delay: time.Hour + time.Duration(at)*time.Millisecond}
		}
		_, err := s.Enqueue(tb.Context(), now, "q", recs)
		assert.NoError(tb, err)
	}
}

// reopen measures how long a directory takes to open after its holder was killed, with the log of its
// latest calls not yet in tables.
func reopen(t *testing.T, n int) {
	t.Helper()
	dir := t.TempDir()
	self, err := os.Executable()
	assert.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestScale$", "-test.timeout=0")
	cmd.Env = append(os.Environ(), scaleChild+"="+dir, scaleVariable+"="+strconv.Itoa(n))
	out, err := cmd.StdoutPipe()
	assert.NoError(t, err)
	assert.NoError(t, cmd.Start())
	_, err = out.Read(make([]byte, 1))
	assert.NoError(t, err)
	assert.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()

	began := time.Now()
	s, err := Open(dir, Options{Logger: quiet})
	assert.NoError(t, err)
	defer func() { assert.NoError(t, s.Close()) }()
	st, err := s.Stats(t.Context(), time.Time{}, "q")
	assert.NoError(t, err)
	took := time.Since(began)
	t.Logf("open and first call after a kill with %d messages: %v; %.0f bytes of disk a message", n, took, float64(s.db.Metrics().DiskSpaceUsage())/float64(n))
	assert.Equal(t, cmp.Or(st.Delayed, st.Ready), int64(n))
	assert.True(t, took < 10*time.Second, took)
}

// holdScale fills a directory and waits to be killed.
func holdScale(t *testing.T, dir string) {
	n, err := strconv.Atoi(os.Getenv(scaleVariable))
	assert.NoError(t, err)
	s, err := Open(dir, Options{Relaxed: true, Logger: quiet})
	assert.NoError(t, err)
	fillDelayed(t, s, time.Now().Add(24*time.Hour), n)
	assert.NoError(t, s.db.LogData(nil, pebble.Sync))
	_, _ = fmt.Fprintln(os.Stdout, "full")
	<-t.Context().Done()
}
