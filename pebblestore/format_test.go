// SPDX-License-Identifier: Apache-2.0

package pebblestore

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/storage"
	"github.com/bidemq/bide/storage/storagetest"
)

// What the first format stored, which knew keys by name only, is read and gets its place among the
// keys. The file holds the keys and values of a queue with a record in every state.
func TestFirstFormat(t *testing.T) {
	disk := vfs.NewMem()
	load(t, disk, "testdata/format1.txt")
	now := time.UnixMilli(1_700_000_000_000).UTC()
	for range 2 {
		store, err := open("dir", Options{Logger: quiet}, disk)
		assert.NoError(t, err)
		assert.Equal(t, storagetest.RepairAll(t, store, now, "q", 5, true), nil)
		assert.NoError(t, store.Close())
	}
	store := openTest(t, Options{Logger: quiet}, disk)
	keys, err := store.Keys(t.Context(), now, "q", storage.KeyFilter{Limit: 10})
	assert.NoError(t, err)
	assert.Equal(t, keys, []storage.KeyStats{
		{Key: "a", Waiting: 2, Head: now}, {Key: "b", Waiting: 1, Leased: 1, Head: now}, {Key: "c", Waiting: 1, Head: now.Add(time.Minute)},
	})
	config, err := store.Configure(t.Context(), "q", storage.ConfigEdit{})
	assert.NoError(t, err)
	assert.Equal(t, config, storage.QueueConfig{MaxDeliveries: 7})
	dead, err := store.Get(t.Context(), now, "q", "dead")
	assert.NoError(t, err)
	assert.Equal(t, []any{dead.State, dead.Reason, dead.Untold, dead.History}, []any{storage.Dead, "why", false, []storage.Attempt(nil)})
	got, err := store.Claim(t.Context(), now, storage.Claim{Queue: "q", Limit: 10, Lease: time.Hour})
	assert.NoError(t, err)
	var ids []string
	for _, r := range got.Records {
		ids = append(ids, r.ID)
	}
	assert.Equal(t, ids, []string{"retried", "k1", "k2", "free"})
	assert.Equal(t, got.Next, time.Minute)
	got, err = store.Claim(t.Context(), now.Add(time.Minute), storage.Claim{Queue: "q", Limit: 10, Lease: time.Hour})
	assert.NoError(t, err)
	assert.Equal(t, len(got.Records), 2) // what was leased, and what was late
}

// What the second format stored, with a key for each lease, is read too. The file holds a queue with a
// record in every state, two of them leased, one with a successor.
func TestSecondFormat(t *testing.T) {
	disk := vfs.NewMem()
	load(t, disk, "testdata/format2.txt")
	now := time.UnixMilli(1_700_000_000_000).UTC()
	for range 2 {
		store, err := open("dir", Options{Logger: quiet}, disk)
		assert.NoError(t, err)
		assert.Equal(t, storagetest.RepairAll(t, store, now, "q", 5, true), nil)
		retried, err := store.Get(t.Context(), now, "q", "retried")
		assert.NoError(t, err)
		assert.Equal(t, []any{retried.State, retried.Attempts, retried.Deliveries, retried.Successor, len(retried.History)}, []any{storage.Leased, 2, 3, true, 1})
		assert.Equal(t, retried.Lease, storage.Lease{Token: 1_700_000_000_000_004, Until: now.Add(time.Minute), By: "me"})
		assert.NoError(t, store.Close())
	}
	store := openTest(t, Options{Logger: quiet}, disk)
	k1, err := store.Get(t.Context(), now, "q", "k1")
	assert.NoError(t, err)
	lost, err := store.Settle(t.Context(), now, []storage.Settlement{{Receipt: k1.Receipt("q"), Verdict: storage.Ack}})
	assert.NoError(t, err)
	assert.Equal(t, lost, nil)
	results, err := store.Enqueue(t.Context(), now, "q", []storage.Record{{ID: "done"}})
	assert.NoError(t, err)
	assert.Equal(t, results[0].Outcome, storage.Duplicate) // its dedup window goes on
	got, err := store.Claim(t.Context(), now, storage.Claim{Queue: "q", Limit: 10, Lease: time.Hour})
	assert.NoError(t, err)
	var ids []string
	for _, r := range got.Records {
		ids = append(ids, r.ID)
	}
	assert.Equal(t, ids, []string{"k2", "leased", "free"})
	got, err = store.Claim(t.Context(), now.Add(time.Minute), storage.Claim{Queue: "q", Limit: 10, Lease: time.Hour})
	assert.NoError(t, err)
	assert.Equal(t, len(got.Records), 3) // what was leased, and two that were late
	assert.Equal(t, storagetest.RepairAll(t, store, now, "q", 5, true), nil)
}

// The file that names the format of a directory is brought up to date by Open.
func TestFormatFile(t *testing.T) {
	dir := t.TempDir()
	assert.NoError(t, os.WriteFile(filepath.Join(dir, formatFile), []byte(formatText+"1\n"), 0o600))
	s, err := Open(dir, Options{})
	assert.NoError(t, err)
	assert.NoError(t, s.Close())
	text, err := os.ReadFile(filepath.Join(dir, formatFile))
	assert.NoError(t, err)
	assert.Equal(t, string(text), formatText+"2\n")
}

// load fills a disk with the keys and values of a file.
func load(t *testing.T, disk vfs.FS, file string) {
	t.Helper()
	store, err := open("dir", Options{Logger: quiet}, disk)
	assert.NoError(t, err)
	f, err := os.Open(file)
	assert.NoError(t, err)
	defer func() { _ = f.Close() }()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var key, value []byte
		_, err := fmt.Sscanf(lines.Text(), "%x %x", &key, &value)
		if len(value) > 0 {
			assert.NoError(t, err)
		}
		assert.NoError(t, store.db.Set(key, value, pebble.Sync))
	}
	assert.NoError(t, store.Close())
}
