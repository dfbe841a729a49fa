// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"strings"
	"testing"

	"github.com/bidemq/bide/bench/report"
	"github.com/bidemq/bide/bench/result"
	"github.com/bidemq/bide/internal/assert"
)

func TestConditionsAreComparedWithTheUsual(t *testing.T) {
	f := forged()
	f.Runs = nil
	add := func(condition, workload string, metrics map[string]float64) {
		f.Runs = append(f.Runs, result.Run{System: "bide-redis", Workload: workload, Condition: condition, Metrics: metrics})
	}
	add("usual", "W2", map[string]float64{result.Rate: 40_000, result.ClientCPU: 10, result.ServerCPU: 12})
	add("headers", "W2", map[string]float64{result.Rate: 30_000, result.ClientCPU: 12.5, result.ServerCPU: 11, result.Doubled: 1})
	add("headers", "W2", map[string]float64{result.Rate: 30_000, result.ClientCPU: 12.5, result.ServerCPU: 11, result.Lost: 2})
	add("away-1ms", "W4", map[string]float64{result.LagP50: 3})
	text, _ := report.Page(report.Files{Conditions: f}, "benchmarks")
	for _, want := range []string{
		"# Under other conditions",
		"| bide on Redis | W2 messages/s | W2 client CPU, µs | W2 server CPU, µs | lost, doubled, early |",
		"| three headers | 30k (−25 %) | 12.5 (+2.5) | 11 (−1) | 2, 1, 0 |",
		"| TCP with 1 ms added each way | 3 | 0, 0, 0 |", // nothing to compare it with
	} {
		assert.True(t, strings.Contains(text, want), "misses: "+want+"\n"+text)
	}
	assert.True(t, !strings.Contains(text, "Persistence"), "a table of nothing")
}

func TestGrowthIsComparedWithTheFirst(t *testing.T) {
	f := forged()
	f.Runs = nil
	add := func(condition, workload string, metrics map[string]float64) {
		f.Runs = append(f.Runs, result.Run{System: "bide-embedded", Workload: workload, Condition: condition, Metrics: metrics})
	}
	add("waiting-1000", "waiting", map[string]float64{result.Cancel + result.Rate: 50_000, result.Cancel + result.ClientCPU: 8})
	add("waiting-10000000", "waiting", map[string]float64{result.Cancel + result.Rate: 25_000, result.Cancel + result.ClientCPU: 10})
	add("consumers-4", "W2", map[string]float64{result.Rate: 20_000, result.Goroutines: 200, result.Doubled: 3})
	text, _ := report.Page(report.Files{Growth: f}, "benchmarks")
	for _, want := range []string{
		"# Growth",
		"| bide embedded | cancel messages/s | cancel client CPU, µs | lost, doubled, early |",
		"| 10³ waiting | 50k | 8 | 0, 0, 0 |",
		"| 10⁷ waiting | 25k (−50 %) | 10 (+2) | 0, 0, 0 |",
		"| 4 consumers | 20k | 200 | 0, 3, 0 |",
	} {
		assert.True(t, strings.Contains(text, want), "misses: "+want+"\n"+text)
	}
}
