// SPDX-License-Identifier: Apache-2.0

package pebblestore

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/storage"
)

// The same directory under another name is held too: one process may not hold it twice.
func TestHeldDirectory(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{})
	assert.NoError(t, err)
	link := filepath.Join(t.TempDir(), "link")
	assert.NoError(t, os.Symlink(dir, link))
	for _, name := range []string{dir, dir + "/.", link} {
		_, err := Open(name, Options{})
		assert.ErrorIs(t, err, storage.ErrUnavailable)
		for _, part := range []string{"process ", "stop it", "Redis"} {
			assert.True(t, strings.Contains(err.Error(), part), err)
		}
	}
	assert.NoError(t, s.Close())
	s, err = Open(link, Options{})
	assert.NoError(t, err)
	assert.NoError(t, s.Close())
	assert.NoError(t, s.Close())
}

func TestForeignDirectory(t *testing.T) {
	dir := t.TempDir()
	assert.NoError(t, os.WriteFile(filepath.Join(dir, "thesis.txt"), []byte("precious"), 0o600))
	_, err := Open(dir, Options{})
	assert.ErrorIs(t, err, storage.ErrInvalid)
	names, err := os.ReadDir(dir)
	assert.NoError(t, err)
	assert.Equal(t, len(names), 1)

	file := filepath.Join(dir, "thesis.txt")
	_, err = Open(file, Options{})
	assert.True(t, err != nil)
	text, err := os.ReadFile(file)
	assert.NoError(t, err)
	assert.Equal(t, string(text), "precious")

	_, err = Open("", Options{})
	assert.ErrorIs(t, err, storage.ErrInvalid)
}

func TestOtherFormat(t *testing.T) {
	for _, text := range []string{"bide pebblestore format 3\n", "bide pebblestore format 0\n", "bide", ""} {
		dir := t.TempDir()
		assert.NoError(t, os.WriteFile(filepath.Join(dir, formatFile), []byte(text), 0o600))
		_, err := Open(dir, Options{})
		assert.ErrorIs(t, err, storage.ErrFormat)
		assert.True(t, strings.Contains(err.Error(), strings.TrimSpace(text)) && strings.Contains(err.Error(), formatText+"2"), err)
		names, err := os.ReadDir(dir)
		assert.NoError(t, err)
		assert.Equal(t, len(names), 1)
	}
}

// A crash while the directory is being made leaves one that can be made.
func TestHalfMadeDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "dir")
	assert.NoError(t, os.MkdirAll(dir, 0o750))
	for _, name := range []string{formatTemp, lockFile} {
		assert.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("bi"), 0o600))
	}
	s, err := Open(dir, Options{})
	assert.NoError(t, err)
	assert.NoError(t, s.Close())
}

// Leases outlive the process, and tokens grow across it. R5 R9
func TestReopen(t *testing.T) {
	dir := t.TempDir()
	now := time.UnixMilli(1_700_000_000_000).UTC()
	s, err := Open(dir, Options{})
	assert.NoError(t, err)
	_, err = s.Enqueue(t.Context(), now, "q", []storage.Record{{ID: "a"}, {ID: "b"}})
	assert.NoError(t, err)
	first, err := s.Claim(t.Context(), now, storage.Claim{Queue: "q", Limit: 1, Lease: time.Minute, By: "me"})
	assert.NoError(t, err)
	assert.NoError(t, s.Close())

	s, err = Open(dir, Options{})
	assert.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	got, err := s.Get(t.Context(), now, "q", "a")
	assert.NoError(t, err)
	assert.Equal(t, got, first.Records[0])
	second, err := s.Claim(t.Context(), now.Add(-time.Hour), storage.Claim{Queue: "q", Limit: 1, Lease: time.Minute})
	assert.NoError(t, err)
	assert.Equal(t, len(second.Records), 0) // due at now only
	second, err = s.Claim(t.Context(), now, storage.Claim{Queue: "q", Limit: 5, Lease: time.Minute})
	assert.NoError(t, err)
	assert.Equal(t, len(second.Records), 1)
	assert.True(t, second.Records[0].Lease.Token > first.Records[0].Lease.Token)
	lost, err := s.Settle(t.Context(), now, []storage.Settlement{{Receipt: first.Records[0].Receipt("q"), Verdict: storage.Ack}})
	assert.NoError(t, err)
	assert.Equal(t, len(lost), 0)
}

// R2: the engine's own clock does not run backwards across a restart either.
func TestClockAcrossReopen(t *testing.T) {
	dir := t.TempDir()
	now := time.UnixMilli(1_700_000_000_000).UTC()
	for _, step := range []struct {
		clock, want time.Time
		steps       int64
	}{
		{now, now, 0},
		{now.Add(-storage.MaxClockStep), now, 0},
		{now.Add(-storage.MaxClockStep - time.Millisecond), now.Add(-storage.MaxClockStep - time.Millisecond), 1},
	} {
		s, err := Open(dir, Options{Clock: func() time.Time { return step.clock }})
		assert.NoError(t, err)
		results, err := s.Enqueue(t.Context(), time.Time{}, "q", []storage.Record{{ID: "a", OnLive: storage.Replace}})
		assert.NoError(t, err)
		assert.Equal(t, results[0].Now, step.want)
		st, err := s.Stats(t.Context(), time.Time{}, "q")
		assert.NoError(t, err)
		assert.Equal(t, st.Total.ClockSteps, step.steps)
		assert.NoError(t, s.Close())
	}
}
