// SPDX-License-Identifier: Apache-2.0

package memstore_test

import (
	"testing"

	"github.com/bidemq/bide/memstore"
	"github.com/bidemq/bide/storage"
	"github.com/bidemq/bide/storage/storagetest"
)

func BenchmarkEngine(b *testing.B) {
	storagetest.Bench(b, func(*testing.B) storage.Engine { return memstore.New(memstore.Options{}) })
}
