// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/internal/redisconn"
	"github.com/bidemq/bide/internal/redistest"
	"github.com/bidemq/bide/storage"
)

// The shards of a queue lie evenly on nodes with equal ranges of slots.
func TestSlotsOfShards(t *testing.T) {
	t.Parallel()
	assert.Equal(t, slot("123456789"), 0x31c3)
	uneven := 0
	const queues = 50
	for q := range queues {
		var on [3]int
		for i := range 12 {
			on[slot(shardTag(fmt.Sprint("default/q", q, "/"), i))*3/slots]++
		}
		if on != [3]int{4, 4, 4} {
			uneven++
		}
	}
	assert.True(t, uneven <= queues/5, uneven, "queues are not even") // a shard near the end of a range
}

// One queue works on all nodes of a cluster alike: commands and memory of the nodes differ by less than 15 %.
func TestShardsSpreadOverNodes(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t)
	s := openQuiet(t, c.URL())
	number := func(n *redistest.Server, section, field string) float64 {
		v, err := strconv.ParseFloat(redisconn.ParseInfo(n.Do(t, "INFO", section))[field], 64)
		assert.NoError(t, err)
		return v
	}
	var commands, memory [3]float64
	const shards, messages = 24, 24_000
	queue := spreadQueue(t, s, shards, storage.ConfigEdit{})
	for i, n := range c.Nodes {
		commands[i], memory[i] = number(n, "stats", "total_commands_processed"), number(n, "memory", "used_memory")
	}
	body := make([]byte, 256)
	for i := 0; i < messages; i += 500 {
		recs := make([]storage.Record, 500)
		for k := range recs {
			recs[k] = storage.Record{ID: fmt.Sprint("message ", i+k), Body: body, DedupFor: time.Millisecond}
		}
		put(t, s, queue, recs...)
	}
	for i, n := range c.Nodes {
		memory[i] = number(n, "memory", "used_memory") - memory[i]
	}
	for left := messages; left > 0; {
		var ss []storage.Settlement
		for _, r := range take(t, s, queue, 100) {
			ss = append(ss, storage.Settlement{Receipt: r.Receipt(queue), Verdict: storage.Ack})
		}
		lost, err := s.Settle(t.Context(), time.Time{}, ss)
		assert.NoError(t, err)
		left -= len(ss) - len(lost)
	}
	for i, n := range c.Nodes {
		commands[i] = number(n, "stats", "total_commands_processed") - commands[i]
	}
	t.Logf("commands %.0f, memory %.0f", commands, memory)
	for what, of := range map[string][3]float64{"commands": commands, "memory": memory} {
		mean := (of[0] + of[1] + of[2]) / 3
		for i := range of {
			assert.True(t, of[i] > 0.85*mean && of[i] < 1.15*mean, what, "of node", i, "is", of[i], "of", mean)
		}
	}
}

// What Redis does for a message does not grow with the number of shards.
func TestCommandsOfShards(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	number := func(section, field string) float64 {
		v, err := strconv.ParseFloat(redisconn.ParseInfo(server.Do(t, "INFO", section))[field], 64)
		assert.NoError(t, err)
		return v
	}
	cpu := func() float64 { return number("cpu", "used_cpu_user") + number("cpu", "used_cpu_sys") }
	var first float64
	for _, shards := range []int{1, 4, 16} {
		s := openQuiet(t, server.URL())
		queue := spreadQueueOr1(t, s, shards)
		const rounds = 384
		work := func(rounds int) {
			for round := range rounds {
				recs := make([]storage.Record, 16)
				for k := range recs {
					recs[k] = storage.Record{ID: fmt.Sprint(round, "/", k), Body: make([]byte, 64)}
				}
				for k := range recs { // one by one, as most producers do
					put(t, s, queue, recs[k])
				}
				if round%128 != 127 {
					continue
				}
				for left := 128 * 16; left > 0; {
					var ss []storage.Settlement
					for _, r := range take(t, s, queue, 16) {
						ss = append(ss, storage.Settlement{Receipt: r.Receipt(queue), Verdict: storage.Ack})
					}
					lost, err := s.Settle(t.Context(), time.Time{}, ss)
					assert.NoError(t, err)
					left -= len(ss) - len(lost)
				}
			}
		}
		work(128)
		commands, spent := number("stats", "total_commands_processed"), cpu()
		work(rounds)
		n := float64(rounds * 16)
		each := (number("stats", "total_commands_processed") - commands) / n
		t.Logf("%2d shards: %.2f commands and %.1f µs of Redis a message", shards, each, (cpu()-spent)/n*1e6)
		if first == 0 {
			first = each
		}
		assert.True(t, each < 1.15*first, each, "commands a message,", first, "with one shard")
	}
}

func spreadQueueOr1(t *testing.T, s *Store, n int) string {
	t.Helper()
	if n > 1 {
		return spreadQueue(t, s, n, storage.ConfigEdit{})
	}
	return spreadQueue(t, s, 0, storage.ConfigEdit{})
}
