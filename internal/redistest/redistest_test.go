// SPDX-License-Identifier: Apache-2.0

package redistest_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

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

func TestSentinelsFailOver(t *testing.T) {
	t.Parallel()
	s := redistest.StartReplicas(t, 2, redistest.Proxied())
	s.Primary.Kill()
	now := s.Changed(t, s.Primary)
	s.Primary.Follow(t, now)
	s.Healthy(t)
	s.Failover(t)
	assert.True(t, s.Now() != now)
	s.Healthy(t)
}

func TestClusterFailsOverAndMovesSlots(t *testing.T) {
	t.Parallel()
	c := redistest.StartReplicatedCluster(t, redistest.Proxied())
	slot := c.Slot(t, "key")
	owner := c.Owner(slot)
	replica := c.ReplicaOf(owner)
	c.Promote(t, replica)
	assert.True(t, c.Owner(slot) == replica)
	c.Healthy(t)
	for _, n := range c.Primaries() {
		if n != replica {
			c.Migrate(t, slot, n)
			assert.True(t, c.Owner(slot) == n)
			break
		}
	}
}

func TestClockTurns(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Clock())
	for _, by := range []time.Duration{time.Hour, -time.Minute, 0} {
		s.Turn(t, by)
		seconds, err := strconv.ParseInt(strings.Split(s.Do(t, "TIME"), "\n")[0], 10, 64)
		assert.NoError(t, err)
		off := time.Unix(seconds, 0).Sub(time.Now().Add(by)).Abs()
		assert.True(t, off < 5*time.Second, by, off)
	}
}
