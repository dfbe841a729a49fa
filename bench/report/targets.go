// SPDX-License-Identifier: Apache-2.0

package report

import "github.com/bidemq/bide/bench/result"

// target that was set before anything was measured, for a machine of two cores with everything on it.
// The figure is the median of a metric, or what it is divided by another system's.
type target struct {
	what     string
	system   string
	workload string
	metric   string
	plus     string  // a metric that is added, "" is none
	over     string  // the system whose figure it is divided by, "" is none
	least    float64 // of the figure; 0 is not at all
	most     float64 // of the figure, where there is no least
	worst    bool    // the worst repetition counts, not their median
	unit     string
}

// rates of a workload, in messages a second, by system.
func rates(workload string, onRedis, synced, relaxed float64) []target {
	var all []target
	for _, s := range []struct {
		system string
		least  float64
	}{{"bide-redis", onRedis}, {"bide-embedded", synced}, {"bide-relaxed", relaxed}} {
		all = append(all, target{system: s.system, workload: workload, metric: result.Rate, least: s.least, unit: "/s"})
	}
	return all
}

// atMost is a target for a metric of a workload, the same for some systems.
func atMost(workload, metric, what string, most float64, unit string, systems ...string) []target {
	var all []target
	for _, s := range systems {
		all = append(all, target{what: what, system: s, workload: workload, metric: metric, most: most, unit: unit})
	}
	return all
}

// engines that are for use, as opposed to tests.
var engines = []string{"bide-redis", "bide-embedded", "bide-relaxed"}

// cells are targets that stand for themselves.
func cells() []target {
	early := atMost("W4", result.Early, "early", 0, "", engines...)
	for i := range early {
		early[i].worst = true
	}
	return join(
		rates("W1-16", 60_000, 20_000, 100_000),
		rates("W1-512", 130_000, 80_000, 180_000),
		rates("W1-batch", 150_000, 120_000, 220_000),
		rates("W2", 120_000, 90_000, 180_000),
		rates("W3-16", 50_000, 12_000, 80_000),
		rates("W3-512", 80_000, 40_000, 120_000),
		atMost("W4", result.LagP50, "lag p50", 2, "ms", engines...),
		atMost("W4", result.LagP99, "lag p99", 10, "ms", engines...),
		atMost("W4", result.LagMax, "lag max", 50, "ms", engines...),
		early,
		atMost("W4b", result.BurstLast, "due to the last", 120, "ms", "bide-redis", "bide-embedded"),
		atMost("W4b", result.BurstLast, "due to the last", 100, "ms", "bide-relaxed"),
		atMost("W5", result.Memory, "memory per waiting message", 460, "bytes", "bide-redis"),
		atMost("W5", result.Disk, "disk per waiting message", 330, "bytes", "bide-embedded"),
		atMost("W6", result.IdleRedis, "Redis commands of ten idle queues", 1, "/s", "bide-redis"),
		atMost("W6", result.IdleClient, "CPU of ten idle queues", 0.1, "%", "bide-embedded"),
	)
}

// shares of the ceiling, in percent.
func shares() []target {
	var all []target
	for _, s := range []struct {
		system, ceiling string
		least           float64
	}{
		{"bide-redis", "ceiling-redis", 80},
		{"bide-embedded", "ceiling-embedded", 70},
		{"bide-relaxed", "ceiling-relaxed", 70},
	} {
		for _, w := range []string{"W1-batch", "W2", "W3-16", "W3-512"} {
			all = append(all, target{
				what: "share of the ceiling", system: s.system, over: s.ceiling, workload: w, metric: result.Rate, least: s.least, unit: "%",
			})
		}
	}
	return all
}

// ratios to peers, which count also where the machine is slow, and what a message costs.
func againstPeers() []target {
	var all []target
	for _, r := range []struct {
		system, peer, what string
		least              float64
	}{
		{"bide-redis", "asynq-tuned", "times asynq, tuned", 10},
		{"bide-redis", "nats-memory", "times NATS in memory", 1},
		{"bide-embedded", "beanstalkd-synced", "times beanstalkd, synced", 20},
	} {
		for _, w := range []string{"W2", "W3-512"} {
			all = append(all, target{what: r.what, system: r.system, over: r.peer, workload: w, metric: result.Rate, least: r.least})
		}
	}
	for _, w := range []string{"W3-16", "W3-512"} {
		all = append(all, target{
			what: "CPU per message, client and Redis", system: "bide-redis", workload: w,
			metric: result.ClientCPU, plus: result.ServerCPU, most: 25, unit: "µs",
		})
	}
	return all
}

func join(some ...[]target) []target {
	var all []target
	for _, s := range some {
		all = append(all, s...)
	}
	return all
}
