// SPDX-License-Identifier: Apache-2.0

package pebblestore

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/storage"
	"github.com/bidemq/bide/storage/storagetest"
)

// The engine answers the programs that bytes stand for as memstore does, with little in memory, so
// that what is on the disk counts. Opening takes longer than a program: a store serves a few hundred.
func FuzzEngine(f *testing.F) {
	var s *Store
	programs := 0
	f.Cleanup(func() {
		if s != nil {
			assert.NoError(f, s.Close())
		}
	})
	storagetest.Fuzz(f, func(t *testing.T) storage.Engine {
		if programs++; programs%300 != 1 {
			return s
		}
		if s != nil {
			assert.NoError(t, s.Close())
		}
		var err error
		s, err = open("dir", Options{Logger: quiet, Relaxed: true}, vfs.NewMem())
		assert.NoError(t, err)
		s.sight = sight{3, 1}
		return s
	})
}
