// SPDX-License-Identifier: Apache-2.0

package redisstore_test

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/internal/redistest"
	"github.com/bidemq/bide/storage"
	"github.com/bidemq/bide/storage/storagetest"
)

// A failover is survived by a process that publishes and one that waits, without a restart.
func TestSurvivesAFailover(t *testing.T) {
	t.Parallel()
	set, queue := redistest.StartSentinels(t), storagetest.NewQueueName()
	producer, consumer := open(t, set.URL()), open(t, set.URL())
	enqueue(t, producer, queue, storage.Record{ID: "before"})
	redistest.Until(t, "the replica has the record", func() bool { return set.Replica.Do(t, "DBSIZE") != "0" })
	first := claim(t, consumer, queue, 1, time.Hour)
	assert.Equal(t, len(first.Records), 1)
	redistest.Until(t, "the replica has the claim", func() bool {
		return set.Replica.Do(t, "ZCARD", "bide:{default/"+queue+"/0}:leases") == "1"
	})
	woken := make(chan error, 1)
	go func() {
		_, err := consumer.Wait(t.Context(), []storage.Scope{{Queue: queue}}, storage.Forever)
		woken <- err
	}()
	set.Primary.Kill()
	stored := false
	redistest.Until(t, "the replica takes over", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		results, err := producer.Enqueue(ctx, time.Time{}, queue, []storage.Record{{ID: "after"}})
		stored = err == nil && results[0].Err == nil
		return stored
	})
	assert.NoError(t, <-woken)
	var got storage.Claimed
	redistest.Until(t, "the consumer claims", func() bool {
		c, err := consumer.Claim(t.Context(), time.Time{}, storage.Claim{Queue: queue, Limit: 1, Lease: time.Hour})
		got = c
		return err == nil && len(c.Records) == 1
	})
	assert.Equal(t, got.Records[0].ID, "after")
	assert.True(t, got.Records[0].Lease.Token > first.Records[0].Lease.Token, "R5: tokens grow over a failover")
	lost, err := consumer.Settle(t.Context(), time.Time{}, []storage.Settlement{
		{Receipt: first.Records[0].Receipt(queue), Verdict: storage.Ack},
	})
	assert.NoError(t, err)
	assert.Equal(t, len(lost), 0)
}

// The slot of a queue moves from node to node and back while it is in use.
func TestSurvivesResharding(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t)
	e, queue := open(t, c.URL()), storagetest.NewQueueName()
	enqueue(t, e, queue, storage.Record{ID: "first"})
	slot := c.Nodes[0].Do(t, "CLUSTER", "KEYSLOT", "bide:{default/"+queue+"/0}:meta")
	n, err := strconv.Atoi(slot)
	assert.NoError(t, err)
	at := n * 3 / 16384
	if n < at*16384/3 {
		at--
	}
	names := make([]string, len(c.Nodes))
	for i, node := range c.Nodes {
		names[i] = node.Do(t, "CLUSTER", "MYID")
	}
	disturb(t, e, queue, 3*time.Second, 300*time.Millisecond, unavailable, func() {
		to := (at + 1) % len(c.Nodes)
		host, port, err := net.SplitHostPort(c.Nodes[to].Address())
		if err != nil {
			t.Error(err)
			return
		}
		c.Nodes[to].Do(t, "CLUSTER", "SETSLOT", slot, "IMPORTING", names[at])
		c.Nodes[at].Do(t, "CLUSTER", "SETSLOT", slot, "MIGRATING", names[to])
		for range 100 { // keys may come into being while others go
			keys := strings.Fields(c.Nodes[at].Do(t, "CLUSTER", "GETKEYSINSLOT", slot, "100"))
			if len(keys) == 0 {
				break
			}
			c.Nodes[at].Do(t, append([]string{"MIGRATE", host, port, "", "0", "5000", "KEYS"}, keys...)...)
		}
		for _, node := range []*redistest.Server{c.Nodes[to], c.Nodes[at], c.Nodes[3-to-at]} {
			node.Do(t, "CLUSTER", "SETSLOT", slot, "NODE", names[to])
		}
		at = to
	})
}

// A server that loads its data answers nothing for a while.
func TestSurvivesLoading(t *testing.T) {
	t.Parallel()
	server, queue := redistest.Start(t, redistest.AppendOnly("always")), storagetest.NewQueueName()
	e := open(t, server.URL())
	enqueue(t, e, queue, storage.Record{ID: "a"})
	for i := range 20 {
		server.Do(t, "SET", fmt.Sprint("key", i), "value")
	}
	server.Do(t, "BGREWRITEAOF")
	redistest.Until(t, "the log is a snapshot", func() bool {
		return strings.Contains(server.Do(t, "INFO", "persistence"), "aof_rewrite_in_progress:0")
	})
	server.Kill()
	done := make(chan error, 1)
	go func() {
		_, err := e.Get(t.Context(), time.Time{}, queue, "a")
		done <- err
	}()
	server.Restart(t, redistest.Config("key-load-delay", "50000", "loading-process-events-interval-bytes", "1024"))
	assert.NoError(t, <-done)
}
