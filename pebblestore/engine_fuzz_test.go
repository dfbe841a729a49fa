// SPDX-License-Identifier: Apache-2.0

package pebblestore

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/bidemq/bide/storage"
	"github.com/bidemq/bide/storage/storagetest"
)

// The engine answers the programs that bytes stand for as memstore does, with little in memory, so
// that what is on the disk counts.
func FuzzEngine(f *testing.F) {
	storagetest.Fuzz(f, func(t *testing.T) storage.Engine {
		s := openTest(t, Options{Logger: quiet, Relaxed: true}, vfs.NewMem())
		s.sight = sight{3, 1}
		return s
	})
}
