// SPDX-License-Identifier: Apache-2.0

package redistest

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// primaryName is what Sentinel calls the primary.
const primaryName = "bide"

// Sentinels are a primary, its replica, and three Sentinels that watch them.
type Sentinels struct {
	Primary   *Server
	Replica   *Server
	sentinels []*Server
}

// StartSentinels runs a set of the test's own on free ports. It fails over within seconds.
func StartSentinels(t testing.TB) *Sentinels {
	t.Helper()
	require(t)
	none := func(string) []string { return nil }
	s := &Sentinels{Primary: startOnPort(t, none)}
	host, port, err := net.SplitHostPort(s.Primary.address)
	if err != nil {
		t.Fatal(err)
	}
	s.Replica = startOnPort(t, func(string) []string { return []string{"--replicaof", host + " " + port} })
	Until(t, "the replica follows", func() bool {
		info, err := s.Replica.try("INFO", "replication")
		return err == nil && strings.Contains(info, "master_link_status:up")
	})
	for range 3 {
		s.sentinels = append(s.sentinels, startSentinel(t, host, port))
	}
	Until(t, "the sentinels know each other", func() bool {
		for _, n := range s.sentinels {
			info, err := n.try("SENTINEL", "MASTER", primaryName)
			if err != nil || field(info, "num-other-sentinels") != "2" || field(info, "num-slaves") != "1" {
				return false
			}
		}
		return true
	})
	return s
}

func startSentinel(t testing.TB, host, port string) *Server {
	t.Helper()
	for range 5 {
		dir := tempDir(t)
		own := freePort(t)
		conf := filepath.Join(dir, "sentinel.conf")
		text := strings.Join([]string{
			"port " + own, "bind 127.0.0.1", "dir " + dir,
			"sentinel monitor " + primaryName + " " + host + " " + port + " 2",
			"sentinel down-after-milliseconds " + primaryName + " 1000",
			"sentinel failover-timeout " + primaryName + " 5000", "",
		}, "\n")
		if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := startProcess(dir, "redis-server", conf, "--sentinel")
		if err != nil {
			t.Fatal(err)
		}
		s := &Server{dir: dir, network: "tcp", address: net.JoinHostPort("127.0.0.1", own), process: p}
		Until(t, "the sentinel answers", func() bool { return p.ended() || s.answers() })
		if !p.ended() {
			t.Cleanup(s.Kill)
			return s
		}
	}
	t.Fatal("found no free port for a sentinel")
	return nil
}

// field finds a name in redis-cli's lines of names and values.
func field(text, name string) string {
	lines := strings.Split(text, "\n")
	for i := 0; i+1 < len(lines); i++ {
		if lines[i] == name {
			return lines[i+1]
		}
	}
	return ""
}

// URL is the set as redisstore.Open takes it.
func (s *Sentinels) URL() string {
	var addresses []string
	for _, n := range s.sentinels {
		addresses = append(addresses, n.address)
	}
	return "redis+sentinel://" + strings.Join(addresses, ",") + "/" + primaryName
}
