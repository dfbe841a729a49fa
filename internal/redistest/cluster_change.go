// SPDX-License-Identifier: Apache-2.0

package redistest

import (
	"net"
	"strconv"
	"strings"
	"testing"
	"time"
)

// member is what a node says of itself.
type member struct {
	primary string // id of the node that it replicates, "" for a primary
	epoch   int
	slots   [][2]int
}

// look asks a node what it is.
func look(n *Server) (member, bool) {
	text, err := n.Try("CLUSTER", "NODES")
	if err != nil {
		return member{}, false
	}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 8 || !strings.Contains(f[2], "myself") {
			continue
		}
		var m member
		if f[3] != "-" {
			m.primary = f[3]
		}
		m.epoch, _ = strconv.Atoi(f[6]) // 0 is what nobody has
		for _, s := range f[8:] {
			first, last, ok := strings.Cut(s, "-")
			if strings.HasPrefix(s, "[") {
				continue // moves
			}
			if !ok {
				last = first
			}
			from, err1 := strconv.Atoi(first)
			to, err2 := strconv.Atoi(last)
			if err1 == nil && err2 == nil {
				m.slots = append(m.slots, [2]int{from, to})
			}
		}
		return m, true
	}
	return member{}, false
}

// Slot is where a key lives.
func (c *Cluster) Slot(t testing.TB, key string) int {
	t.Helper()
	for _, n := range c.All() {
		if text, err := n.Try("CLUSTER", "KEYSLOT", key); err == nil {
			slot, err := strconv.Atoi(text)
			if err != nil {
				t.Fatal(err)
			}
			return slot
		}
	}
	t.Fatal("no node answers")
	return 0
}

// Owner is the primary of a slot, the youngest of those that think so; nil if there is none.
func (c *Cluster) Owner(slot int) *Server {
	var owner *Server
	best := -1
	for _, n := range c.All() {
		m, ok := look(n)
		if !ok || m.primary != "" || m.epoch <= best {
			continue
		}
		for _, s := range m.slots {
			if s[0] <= slot && slot <= s[1] {
				owner, best = n, m.epoch
			}
		}
	}
	return owner
}

// ReplicaOf is a replica of a node that has caught up with it; nil if there is none.
func (c *Cluster) ReplicaOf(primary *Server) *Server {
	for _, n := range c.All() {
		if m, ok := look(n); ok && m.primary == c.ids[primary] && n.caughtUp(primary) {
			return n
		}
	}
	return nil
}

// withID is the node that has an id, nil if there is none.
func (c *Cluster) withID(id string) *Server {
	for n, is := range c.ids {
		if is == id {
			return n
		}
	}
	return nil
}

// caughtUp says whether a replica has what its primary had a moment ago. A link that is up says less: it
// may be silent, and the replica seconds behind.
func (s *Server) caughtUp(primary *Server) bool {
	if primary == nil {
		return false
	}
	had, err1 := primary.Try("INFO", "replication")
	has, err2 := s.Try("INFO", "replication")
	if err1 != nil || err2 != nil || !strings.Contains(has, "master_link_status:up") {
		return false
	}
	sent, ok1 := offset(had, "master_repl_offset:")
	got, ok2 := offset(has, "slave_repl_offset:")
	return ok1 && ok2 && got >= sent
}

// offset reads a number of INFO.
func offset(info, name string) (int64, bool) {
	_, rest, ok := strings.Cut(info, name)
	line, _, _ := strings.Cut(rest, "\n")
	n, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
	return n, ok && err == nil
}

// Healthy waits until every node that runs is either a primary with slots or has caught up with its primary, and
// all agree that the cluster is whole.
func (c *Cluster) Healthy(t testing.TB) {
	t.Helper()
	until(t, election, "the cluster is whole", func() bool {
		for _, n := range c.All() {
			if n.process.ended() {
				continue
			}
			m, ok := look(n)
			if !ok || m.primary != "" && !n.caughtUp(c.withID(m.primary)) || m.primary == "" && len(m.slots) == 0 {
				return false
			}
			info, err := n.Try("CLUSTER", "INFO")
			if err != nil || !strings.Contains(info, "cluster_state:ok") || !c.seenBy(n, m, c.ids[n]) {
				return false
			}
		}
		return true
	})
}

// seenBy says whether the nodes that run know what a node is.
func (c *Cluster) seenBy(n *Server, m member, id string) bool {
	for _, other := range c.All() {
		if other == n || other.process.ended() {
			continue
		}
		text, err := other.Try("CLUSTER", "NODES")
		if err != nil {
			return false
		}
		for line := range strings.Lines(text) {
			f := strings.Fields(line)
			if len(f) < 8 || f[0] != id {
				continue
			}
			if strings.Contains(f[2], "fail") || m.primary == "" && f[2] != "master" || m.primary != "" && f[3] != m.primary {
				return false
			}
		}
	}
	return true
}

// TakenOver waits until a replica owns a slot.
func (c *Cluster) TakenOver(t testing.TB, slot int, replica *Server) {
	t.Helper()
	until(t, election, "the replica takes over", func() bool { return c.Owner(slot) == replica })
}

// Promote makes a replica the primary of its slots: in agreement with its primary, or with FORCE or
// TAKEOVER without. It asks again when nothing came of it, as happens while votes are young.
func (c *Cluster) Promote(t testing.TB, replica *Server, how ...string) {
	t.Helper()
	var asked time.Time
	until(t, election, "the replica takes over", func() bool {
		if m, ok := look(replica); ok && m.primary == "" {
			return true
		}
		if time.Since(asked) > 3*time.Second {
			_, err := replica.Try(append([]string{"CLUSTER", "FAILOVER"}, how...)...)
			if err == nil {
				asked = time.Now()
			}
		}
		return false
	})
}

// Primaries are the nodes that run and think so.
func (c *Cluster) Primaries() []*Server {
	var primaries []*Server
	for _, n := range c.All() {
		if m, ok := look(n); ok && m.primary == "" {
			primaries = append(primaries, n)
		}
	}
	return primaries
}

// Migrate moves a slot from its owner to another primary, with its keys, while it is in use.
func (c *Cluster) Migrate(t testing.TB, slot int, to *Server) {
	t.Helper()
	from := c.Owner(slot)
	if from == nil || from == to {
		t.Fatal("a slot moves from one primary to another")
	}
	number := strconv.Itoa(slot)
	host, port, err := net.SplitHostPort(to.address)
	if err != nil {
		t.Fatal(err)
	}
	until(t, election, "the target knows whose the slot is", func() bool { // which it may have had before
		_, err := to.Try("CLUSTER", "SETSLOT", number, "IMPORTING", c.ids[from])
		return err == nil
	})
	from.Do(t, "CLUSTER", "SETSLOT", number, "MIGRATING", c.ids[to])
	Until(t, "the slot is empty", func() bool { // keys may come into being while others go
		keys := strings.Fields(from.Do(t, "CLUSTER", "GETKEYSINSLOT", number, "100"))
		if len(keys) == 0 {
			return true
		}
		from.Do(t, append([]string{"MIGRATE", host, port, "", "0", "5000", "KEYS"}, keys...)...)
		return false
	})
	to.Do(t, "CLUSTER", "SETSLOT", number, "NODE", c.ids[to])
	from.Do(t, "CLUSTER", "SETSLOT", number, "NODE", c.ids[to])
	for _, n := range c.Primaries() {
		if n != to && n != from {
			n.Do(t, "CLUSTER", "SETSLOT", number, "NODE", c.ids[to])
		}
	}
}
