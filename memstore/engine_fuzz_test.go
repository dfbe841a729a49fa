// SPDX-License-Identifier: Apache-2.0

package memstore_test

import (
	"testing"

	"github.com/bidemq/bide/memstore"
	"github.com/bidemq/bide/storage"
	"github.com/bidemq/bide/storage/storagetest"
)

// The model answers a program the same each time, and leaves nothing to repair at its end. R14
func FuzzEngine(f *testing.F) {
	storagetest.Fuzz(f, func(*testing.T) storage.Engine { return memstore.New(memstore.Options{}) })
}
