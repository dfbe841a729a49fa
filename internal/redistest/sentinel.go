// SPDX-License-Identifier: Apache-2.0

package redistest

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// primaryName is what Sentinel calls the primary.
const primaryName = "bide"

// Sentinels are a primary, its replicas, and three Sentinels that watch them.
type Sentinels struct {
	Primary   *Server   // at the beginning
	Replica   *Server   // the first one, at the beginning
	Nodes     []*Server // all of them
	sentinels []*Server
}

// StartSentinels runs a set of the test's own on free ports, with one replica. It fails over within
// seconds.
func StartSentinels(t testing.TB, options ...Option) *Sentinels {
	t.Helper()
	return StartReplicas(t, 1, options...)
}

// StartReplicas is StartSentinels with more replicas. Options are for the servers that hold data.
func StartReplicas(t testing.TB, replicas int, options ...Option) *Sentinels {
	t.Helper()
	require(t)
	s := &Sentinels{}
	for i := range 1 + replicas {
		s.Nodes = append(s.Nodes, startOnPort(t, options, func(_, known string) []string {
			args := []string{"--replica-announce-ip", "127.0.0.1", "--replica-announce-port", known}
			if i > 0 {
				host, port := s.Nodes[0].hostPort(t)
				args = append(args, "--replicaof", host+" "+port)
			}
			return args
		}))
	}
	s.Primary, s.Replica = s.Nodes[0], s.Nodes[1]
	for _, n := range s.Nodes[1:] {
		Until(t, "the replica follows", func() bool { return n.caughtUp(s.Primary) })
	}
	host, port := s.Primary.hostPort(t)
	for range 3 {
		s.sentinels = append(s.sentinels, startSentinel(t, host, port))
	}
	Until(t, "the sentinels know each other", func() bool {
		for _, n := range s.sentinels {
			info, err := n.Try("SENTINEL", "MASTER", primaryName)
			if err != nil || field(info, "num-other-sentinels") != "2" || field(info, "num-slaves") != strconv.Itoa(replicas) {
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
			"sentinel failover-timeout " + primaryName + " 3000", "",
		}, "\n")
		if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := startProcess(dir, nil, serverProgram(), conf, "--sentinel")
		if err != nil {
			t.Fatal(err)
		}
		s := &Server{dir: dir, network: "tcp", address: net.JoinHostPort("127.0.0.1", own), process: p}
		Until(t, "the sentinel answers", func() bool { return p.ended() || s.answers() })
		if !p.ended() {
			t.Cleanup(s.Kill)
			// Sentinel looks around every ten seconds otherwise. Servers before version 7 do not
			// know the command, and fail over later.
			_, _ = s.Try("SENTINEL", "DEBUG", "INFO-PERIOD", "200", "PUBLISH-PERIOD", "200", "ASK-PERIOD", "200", "PING-PERIOD", "200")
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
