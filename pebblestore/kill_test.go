// SPDX-License-Identifier: Apache-2.0

package pebblestore

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/storage"
)

const killVariable = "BIDE_PEBBLESTORE_KILL"

// ledger is what the processes that were killed had said, kept outside of them.
type ledger struct {
	stored  map[string]bool
	settled map[string]bool // or perhaps settled
	claims  map[string]int  // reported
}

// R9: what a process was told is there after it was killed under load, claims included.
func TestKill(t *testing.T) {
	if dir := os.Getenv(killVariable); dir != "" {
		victim(t, dir)
		return
	}
	dir := t.TempDir()
	seen := ledger{map[string]bool{}, map[string]bool{}, map[string]int{}}
	rounds := 8
	if testing.Short() {
		rounds = 2
	}
	for range rounds {
		kill(t, dir, 200+rand.IntN(2000), &seen)
	}
	assert.True(t, len(seen.stored) > 0 && len(seen.claims) > 0)

	s, err := Open(dir, Options{})
	assert.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	for id := range seen.stored {
		r, err := s.Get(t.Context(), time.Time{}, "q", id)
		if errors.Is(err, storage.ErrNotFound) {
			assert.True(t, seen.settled[id], "lost ", id)
			continue
		}
		assert.NoError(t, err, id)
		assert.Equal(t, string(r.Body), id)
		if r.Attempts < seen.claims[id] {
			t.Fatalf("%q has %d attempts, %d claims were reported", id, r.Attempts, seen.claims[id])
		}
	}
	for after := ""; ; {
		r, err := s.Repair(t.Context(), time.Time{}, "q", storage.Repair{DryRun: true, After: after, Limit: 1000})
		assert.NoError(t, err)
		assert.Equal(t, r.Fixes, nil)
		if after = r.Next; after == "" {
			return
		}
	}
}

// kill starts a process on the directory and kills it after so many lines.
func kill(t *testing.T, dir string, lines int, seen *ledger) {
	t.Helper()
	self, err := os.Executable()
	assert.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestKill$", "-test.count=1")
	cmd.Env = append(os.Environ(), killVariable+"="+dir)
	out, err := cmd.StdoutPipe()
	assert.NoError(t, err)
	assert.NoError(t, cmd.Start())
	said := bufio.NewScanner(out)
	for n := 0; said.Scan(); n++ {
		if n == 0 { // the directory is held, and the error says by whom
			_, err := Open(dir, Options{})
			assert.ErrorIs(t, err, storage.ErrUnavailable)
			assert.True(t, strings.Contains(err.Error(), fmt.Sprintf("process %d on ", cmd.Process.Pid)), err)
		}
		if n == lines {
			assert.NoError(t, cmd.Process.Kill())
		}
		word, id, ok := strings.Cut(said.Text(), " ")
		if !ok {
			t.Log(said.Text())
			continue
		}
		switch word {
		case "stored":
			seen.stored[id] = true
		case "settling":
			seen.settled[id] = true
		case "claimed":
			seen.claims[id]++
		default:
			t.Log(said.Text())
		}
	}
	assert.True(t, cmd.Wait() != nil, "the process ended by itself")
}

// victim works until it is killed, and says what it was told.
func victim(t *testing.T, dir string) {
	s, err := Open(dir, Options{})
	assert.NoError(t, err)
	say := func(word, id string) { _, _ = fmt.Fprintf(os.Stdout, "%s %s\n", word, id) }
	life := strconv.FormatInt(time.Now().UnixNano(), 36)
	var wg sync.WaitGroup
	for lane := range 8 {
		wg.Go(func() {
			for n := 0; ; n++ {
				id := fmt.Sprintf("%s-%d-%d", life, lane, n)
				if _, err := s.Enqueue(t.Context(), time.Time{}, "q", []storage.Record{{ID: id, Body: []byte(id)}}); err != nil {
					return
				}
				say("stored", id)
			}
		})
	}
	for range 4 {
		wg.Go(func() {
			for {
				got, err := s.Claim(t.Context(), time.Time{}, storage.Claim{Queue: "q", Limit: 5, Lease: 50 * time.Millisecond})
				if err != nil {
					return
				}
				for i, r := range got.Records {
					say("claimed", r.ID)
					if i%2 == 0 { // the others are left to their leases
						say("settling", r.ID)
						_, _ = s.Settle(t.Context(), time.Time{}, []storage.Settlement{{Receipt: r.Receipt("q"), Verdict: storage.Ack}})
					}
				}
			}
		})
	}
	wg.Wait()
}
