// SPDX-License-Identifier: Apache-2.0

package redistest_test

import (
	"strings"
	"testing"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/internal/redistest"
)

func TestServerKeepsItsLogOverAKill(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.AppendOnly("always"))
	assert.Equal(t, s.Do(t, "SET", "k", "v"), "OK")
	s.Kill()
	s.Restart(t)
	assert.Equal(t, s.Do(t, "GET", "k"), "v")
}

func TestSharedServerIsShared(t *testing.T) {
	t.Parallel()
	a, b := redistest.Shared(t), redistest.Shared(t)
	assert.Equal(t, a.URL(), b.URL())
	assert.True(t, strings.HasPrefix(a.URL(), "redis+unix:///"))
	assert.Equal(t, a.Do(t, "PING"), "PONG")
}

func TestClusterServesAllSlots(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t)
	assert.Equal(t, len(c.Nodes), 3)
	assert.True(t, strings.Contains(c.Nodes[2].Do(t, "CLUSTER", "INFO"), "cluster_slots_ok:16384"))
}

func TestSentinelsKnowThePrimary(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinels(t)
	assert.True(t, strings.Contains(s.Primary.Do(t, "ROLE"), "master"))
	assert.True(t, strings.Contains(s.Replica.Do(t, "ROLE"), "slave"))
}
