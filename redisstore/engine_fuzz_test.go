// SPDX-License-Identifier: Apache-2.0

package redisstore_test

import (
	"testing"

	"github.com/bidemq/bide/internal/redistest"
	"github.com/bidemq/bide/storage"
	"github.com/bidemq/bide/storage/storagetest"
)

// The scripts answer the programs that bytes stand for as memstore does.
func FuzzEngine(f *testing.F) {
	s := open(f, redistest.Start(f).URL())
	storagetest.Fuzz(f, func(*testing.T) storage.Engine { return s })
}
