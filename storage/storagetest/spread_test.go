// SPDX-License-Identifier: Apache-2.0

package storagetest

import (
	"testing"

	"github.com/bidemq/bide/memstore"
)

// A queue that is not spread keeps what spread queues keep, and more.
func TestSpreadProgramsOnOneQueue(t *testing.T) {
	t.Parallel()
	SpreadPrograms(t, memstore.New(memstore.Options{}))
}
