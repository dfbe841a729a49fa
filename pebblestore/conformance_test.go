// SPDX-License-Identifier: Apache-2.0

package pebblestore

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/storage"
	"github.com/bidemq/bide/storage/storagetest"
)

func TestConformanceInMemory(t *testing.T) {
	storagetest.Run(t, func(t *testing.T) storage.Engine { return openTest(t, Options{}, vfs.NewMem()) })
}

// What is kept in memory changes no answer: here it is hardly anything.
func TestConformanceShortSighted(t *testing.T) {
	storagetest.Run(t, func(t *testing.T) storage.Engine {
		s := openTest(t, Options{}, vfs.NewMem())
		s.sight = sight{3, 1}
		return s
	})
}

func TestConformanceOnDisk(t *testing.T) {
	storagetest.Rules(t, func(t *testing.T) storage.Engine {
		s, err := Open(t.TempDir(), Options{})
		assert.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, s.Close()) })
		return s
	})
}

// openTest opens a store and closes it when the test ends.
func openTest(t testing.TB, o Options, disk vfs.FS) *Store {
	t.Helper()
	s, err := open("dir", o, disk)
	assert.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	return s
}
