// SPDX-License-Identifier: Apache-2.0

package redistest

import (
	"slices"
	"strconv"
	"strings"
	"testing"
)

const slots = 16384

// Cluster is a Redis Cluster of three primaries.
type Cluster struct {
	Nodes    []*Server // that began as primaries
	Replicas []*Server // that began as their replicas, one each or none
	ids      map[*Server]string
}

// StartCluster runs a cluster of the test's own on free ports, without replicas.
func StartCluster(t testing.TB, options ...Option) *Cluster {
	t.Helper()
	require(t)
	c := &Cluster{ids: map[*Server]string{}}
	c.start(t, 3, options)
	return c
}

// StartReplicatedCluster runs a cluster in which each primary has a replica. It fails over within
// seconds.
func StartReplicatedCluster(t testing.TB, options ...Option) *Cluster {
	t.Helper()
	require(t)
	c := &Cluster{ids: map[*Server]string{}}
	c.start(t, 6, options)
	for i, r := range c.Replicas {
		id := c.ids[c.Nodes[i]]
		Until(t, "the replica knows its primary", func() bool {
			_, err := r.Try("CLUSTER", "REPLICATE", id)
			return err == nil
		})
	}
	c.Healthy(t)
	return c
}

func (c *Cluster) start(t testing.TB, count int, options []Option) {
	t.Helper()
	bus := make([]string, count)
	for i := range count {
		n := startOnPort(t, options, func(_, known string) []string {
			bus[i] = freePort(t)
			return []string{
				"--cluster-enabled", "yes", "--cluster-port", bus[i], "--cluster-config-file", "nodes.conf",
				"--cluster-node-timeout", "2000", "--cluster-allow-replica-migration", "no",
				"--cluster-announce-ip", "127.0.0.1", "--cluster-announce-port", known, "--cluster-announce-bus-port", bus[i],
			}
		})
		c.ids[n] = n.Do(t, "CLUSTER", "MYID")
		n.Do(t, "CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1))
		if i >= 3 {
			c.Replicas = append(c.Replicas, n)
			continue
		}
		n.Do(t, "CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(i*slots/3), strconv.Itoa((i+1)*slots/3-1))
		c.Nodes = append(c.Nodes, n)
	}
	for i, n := range c.All()[1:] {
		host, port := n.hostPort(t)
		c.Nodes[0].Do(t, "CLUSTER", "MEET", host, port, bus[i+1])
	}
	Until(t, "the cluster is formed", func() bool {
		for _, n := range c.All() {
			info, err := n.Try("CLUSTER", "INFO")
			if err != nil || !strings.Contains(info, "cluster_state:ok") || !strings.Contains(info, "cluster_known_nodes:"+strconv.Itoa(count)) {
				return false
			}
			list, err := n.Try("CLUSTER", "SLOTS")
			if err != nil || strings.Count(list, "127.0.0.1") < 3 {
				return false
			}
		}
		return true
	})
}

// All are the nodes, dead ones too.
func (c *Cluster) All() []*Server { return slices.Concat(c.Nodes, c.Replicas) }

// URL is the cluster as redisstore.Open takes it.
func (c *Cluster) URL() string {
	var addresses []string
	for _, n := range c.All() {
		addresses = append(addresses, n.reached())
	}
	return "redis+cluster://" + strings.Join(addresses, ",")
}
