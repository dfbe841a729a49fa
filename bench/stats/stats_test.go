// SPDX-License-Identifier: Apache-2.0

package stats_test

import (
	"testing"

	"github.com/bidemq/bide/bench/stats"
	"github.com/bidemq/bide/internal/assert"
)

func TestSummarize(t *testing.T) {
	for _, c := range []struct {
		name string
		in   []float64
		want stats.Summary
	}{
		{"nothing", nil, stats.Summary{}},
		{"one", []float64{4}, stats.Summary{Median: 4, Min: 4, Max: 4, Count: 1}},
		{"an odd number, unsorted", []float64{9, 1, 5}, stats.Summary{Median: 5, Min: 1, Max: 9, Count: 3}},
		{"an even number", []float64{4, 1, 2, 9}, stats.Summary{Median: 3, Min: 1, Max: 9, Count: 4}},
	} {
		assert.Equal(t, stats.Summarize(c.in), c.want, c.name)
	}
	in := []float64{3, 1, 2}
	stats.Summarize(in)
	assert.Equal(t, in, []float64{3, 1, 2})
}

func TestPercentile(t *testing.T) {
	hundred := make([]int, 100)
	for i := range hundred {
		hundred[i] = i + 1
	}
	for p, want := range map[float64]int{0: 1, 1: 1, 50: 50, 99: 99, 99.1: 100, 100: 100} {
		assert.Equal(t, stats.Percentile(hundred, p), want, p)
	}
	assert.Equal(t, stats.Percentile([]int{7}, 50), 7)
	assert.Equal(t, stats.Percentile([]int{1, 2}, 50), 1)
	assert.Equal(t, stats.Percentile([]int{1, 2, 3}, 99), 3)
	assert.Equal(t, stats.Percentile([]int(nil), 50), 0)
}
