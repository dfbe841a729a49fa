// SPDX-License-Identifier: Apache-2.0

package redistest

import (
	"net"
	"strconv"
	"strings"
	"testing"
)

const slots = 16384

// Cluster is a Redis Cluster of three primaries.
type Cluster struct {
	Nodes []*Server
}

// StartCluster runs a cluster of the test's own on free ports.
func StartCluster(t testing.TB) *Cluster {
	t.Helper()
	require(t)
	c := &Cluster{}
	for range 3 {
		c.Nodes = append(c.Nodes, startOnPort(t, func(port string) []string {
			return []string{
				"--cluster-enabled", "yes", "--cluster-port", freePort(t), "--cluster-config-file", "nodes.conf",
				"--cluster-node-timeout", "2000",
			}
		}))
	}
	for i, n := range c.Nodes {
		first, last := i*slots/3, (i+1)*slots/3-1
		n.Do(t, "CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(first), strconv.Itoa(last))
		n.Do(t, "CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1))
	}
	for _, n := range c.Nodes[1:] {
		host, port, err := net.SplitHostPort(n.address)
		if err != nil {
			t.Fatal(err)
		}
		bus := n.Do(t, "CONFIG", "GET", "cluster-port")
		c.Nodes[0].Do(t, "CLUSTER", "MEET", host, port, bus[strings.LastIndex(bus, "\n")+1:])
	}
	Until(t, "the cluster is formed", func() bool {
		for _, n := range c.Nodes {
			info, err := n.try("CLUSTER", "INFO")
			if err != nil || !strings.Contains(info, "cluster_state:ok") || !strings.Contains(info, "cluster_known_nodes:3") {
				return false
			}
			list, err := n.try("CLUSTER", "SLOTS")
			if err != nil || strings.Count(list, "127.0.0.1") < 3 {
				return false
			}
		}
		return true
	})
	return c
}

// URL is the cluster as redisstore.Open takes it.
func (c *Cluster) URL() string {
	var addresses []string
	for _, n := range c.Nodes {
		addresses = append(addresses, n.address)
	}
	return "redis+cluster://" + strings.Join(addresses, ",")
}

// startOnPort runs a server on a free port of the loopback interface. Somebody else may take the
// port first: then another is tried.
func startOnPort(t testing.TB, args func(port string) []string) *Server {
	t.Helper()
	dir := tempDir(t)
	for range 5 {
		port := freePort(t)
		s := &Server{dir: dir, network: "tcp", address: net.JoinHostPort("127.0.0.1", port)}
		s.args = append([]string{
			"--port", port, "--bind", "127.0.0.1", "--dir", dir,
			"--save", "", "--appendonly", "no", "--enable-debug-command", "yes",
		}, args(port)...)
		p, err := startProcess(dir, "redis-server", s.args...)
		if err != nil {
			t.Fatal(err)
		}
		s.process = p
		Until(t, "redis-server answers", func() bool { return p.ended() || s.answers() })
		if !p.ended() {
			t.Cleanup(s.Kill)
			return s
		}
	}
	t.Fatal("found no free port for redis-server")
	return nil
}

// freePort returns a port that nobody listens on.
func freePort(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}
