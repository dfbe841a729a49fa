// SPDX-License-Identifier: Apache-2.0

package memstore_test

import (
	"testing"

	"github.com/bidemq/bide/memstore"
	"github.com/bidemq/bide/storage"
	"github.com/bidemq/bide/storage/storagetest"
)

func TestEngine(t *testing.T) {
	storagetest.Run(t, func(t *testing.T) storage.Engine {
		s := memstore.New(memstore.Options{})
		t.Cleanup(func() { _ = s.Close() })
		return s
	})
}
