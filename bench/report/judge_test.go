// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"strings"
	"testing"

	"github.com/bidemq/bide/bench/report"
	"github.com/bidemq/bide/bench/result"
	"github.com/bidemq/bide/internal/assert"
)

func TestTargetsAreJudged(t *testing.T) {
	f := forged()
	f.Runs = append(f.Runs,
		result.Run{System: "bide-redis", Workload: "W3-512", Metrics: map[string]float64{
			result.Rate: 80_000, result.ClientCPU: 12, result.ServerCPU: 13,
		}},
		result.Run{System: "bide-redis", Workload: "W4", Metrics: map[string]float64{result.LagP50: 1.5, result.Early: 1}},
		result.Run{System: "bide-redis", Workload: "W4", Repetition: 2, Metrics: map[string]float64{result.Early: 0}},
	)
	text, _ := report.Page(report.Files{Main: f}, "benchmarks")
	for _, want := range []string{
		"| W2 bide on Redis | 30k/s | at least 120k/s | **not met** | `go run . run -systems bide-redis -workloads W2` |",
		"| W3-512 bide on Redis | 80k/s | at least 80k/s | met | `go run . run -systems bide-redis -workloads W3-512` |",
		"| W2 bide on Redis, share of the ceiling | 50 % | at least 80 % | **not met** | `go run . run -systems bide-redis,ceiling-redis -workloads W2` |",
		"| W2 bide on Redis, times asynq, tuned | 6 | at least 10 | **not met** |",
		"| W2 bide on Redis, times NATS in memory | | at least 1 | not measured |",
		"| W3-512 bide on Redis, CPU per message, client and Redis | 25 µs | at most 25 µs | met |",
		"| W4 bide on Redis, lag p50 | 1.5 ms | at most 2 ms | met |",
		"| W4 bide on Redis, early | 1 | at most 0 | **not met** |", // of two repetitions one
		"| W6 bide on Redis, Redis commands of ten idle queues | | at most 1/s | not measured |",
	} {
		assert.True(t, strings.Contains(text, want), "misses: "+want+"\n"+text)
	}
}
