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
