// SPDX-License-Identifier: Apache-2.0

package redisstore_test

import (
	"testing"

	"github.com/bidemq/bide/internal/redistest"
	"github.com/bidemq/bide/storage/storagetest"
)

// Random programs through two processes, of which each changes the number of shards behind the back of the other.
// R20
func TestSpreadPrograms(t *testing.T) {
	t.Parallel()
	url := redistest.Shared(t).URL()
	storagetest.SpreadPrograms(t, open(t, url), open(t, url))
}
