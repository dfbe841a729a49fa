// SPDX-License-Identifier: Apache-2.0

package redistest

import (
	"net"
	"strings"
	"testing"
	"time"
)

// Now is the primary that most Sentinels name, nil if there is none.
func (s *Sentinels) Now() *Server {
	votes := map[string]int{}
	for _, n := range s.sentinels {
		answer, err := n.Try("SENTINEL", "GET-MASTER-ADDR-BY-NAME", primaryName)
		if host, port, ok := strings.Cut(answer, "\n"); err == nil && ok {
			votes[net.JoinHostPort(host, port)]++
		}
	}
	for _, n := range s.Nodes {
		if 2*votes[n.reached()] > len(s.sentinels) {
			return n
		}
	}
	return nil
}

// election is how long Sentinels may take: when the first attempt fails, they wait before the next.
const election = 3 * patience

// Failover asks for another primary, which the present one need not agree with, and waits until it
// takes writes. It asks again when nothing came of it.
func (s *Sentinels) Failover(t testing.TB) {
	t.Helper()
	from := s.Now()
	var asked time.Time
	until(t, election, "another primary", func() bool {
		if now := s.Now(); now != nil && now != from && now.isPrimary() {
			return true
		}
		if time.Since(asked) > 5*time.Second {
			if _, err := s.sentinels[0].Try("SENTINEL", "FAILOVER", primaryName); err == nil {
				asked = time.Now()
			}
		}
		return false
	})
}

// Changed waits until the sentinels agree on another primary than a given one, and it takes writes.
func (s *Sentinels) Changed(t testing.TB, from *Server) *Server {
	t.Helper()
	var now *Server
	until(t, election, "another primary", func() bool {
		now = s.Now()
		return now != nil && now != from && now.isPrimary()
	})
	return now
}

func (s *Server) isPrimary() bool {
	role, err := s.Try("ROLE")
	return err == nil && strings.HasPrefix(role, "master")
}

// Follow makes a server a replica of another one, or starts it as one.
func (s *Server) Follow(t testing.TB, primary *Server) {
	t.Helper()
	host, port := primary.hostPort(t)
	if s.process.ended() {
		s.Restart(t, Config("replicaof", host+" "+port))
		return
	}
	s.Do(t, "REPLICAOF", host, port)
}

// Healthy waits until every server that runs is the primary or has caught up with it, and the Sentinels know
// that, so that a failover can come.
func (s *Sentinels) Healthy(t testing.TB) {
	t.Helper()
	until(t, election, "all follow the primary", func() bool {
		now := s.Now()
		if now == nil || !now.isPrimary() {
			return false
		}
		for _, n := range s.Nodes {
			if n != now && !n.process.ended() && !n.caughtUp(now) {
				return false
			}
		}
		for _, n := range s.sentinels {
			info, err := n.Try("SENTINEL", "MASTER", primaryName)
			if err != nil || field(info, "flags") != "master" {
				return false
			}
		}
		return true
	})
}
