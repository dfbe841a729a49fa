// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"time"

	"github.com/bidemq/bide/bench/server"
	"github.com/bidemq/bide/bench/system"
)

// distance between the program and its Redis.
func distance() Group {
	return Group{
		Title: "Redis over a network",
		About: "A relay adds a millisecond to everything, each way, without a bound on what is under way. Its own CPU time is not counted.",
		Conditions: []Condition{{
			Name: "away-1ms", Title: "TCP with 1 ms added each way", Systems: onRedis, Workloads: []string{"W1-16", "W1-512", "W2", "W3-512", "W4"},
			Variation: system.Variation{Redis: server.RedisOptions{Away: time.Millisecond}},
		}},
	}
}

// persistence of Redis.
func persistence() Group {
	aof := func(fsync string) Condition {
		return Condition{
			Name: "aof-" + fsync, Title: "appendonly yes, appendfsync " + fsync, Systems: onRedis, Workloads: loads,
			Variation: system.Variation{Redis: server.RedisOptions{AOF: fsync}},
		}
	}
	return Group{
		Title: "Persistence of Redis", Conditions: []Condition{aof("everysec"), aof("always")},
		About: "With an append-only file, which the usual runs do without.",
	}
}
