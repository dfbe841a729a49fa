// SPDX-License-Identifier: Apache-2.0

package redisstore_test

import (
	"testing"

	"github.com/bidemq/bide/internal/redistest"
	"github.com/bidemq/bide/storage"
	"github.com/bidemq/bide/storage/storagetest"
)

func BenchmarkEngine(b *testing.B) {
	url := redistest.Start(b).URL()
	storagetest.Bench(b, func(b *testing.B) storage.Engine { return open(b, url) })
}
