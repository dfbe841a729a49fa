// SPDX-License-Identifier: Apache-2.0

package system_test

import (
	"testing"
	"time"

	"github.com/bidemq/bide/bench/system"
	"github.com/bidemq/bide/internal/assert"
)

func TestDue(t *testing.T) {
	assert.True(t, system.Due{}.Of(7).IsZero())
	first := time.Unix(100, 0)
	assert.Equal(t, system.Due{First: first, Apart: time.Second}.Of(7), first.Add(7*time.Second))

	const n = 10_000
	scattered := system.Due{First: first, Apart: time.Second, Over: n}
	taken := map[int]bool{}
	for i := range n {
		taken[scattered.Scattered(i)] = true
	}
	assert.Equal(t, len(taken), n)
	assert.Equal(t, scattered.Of(n), first) // from the beginning
}
