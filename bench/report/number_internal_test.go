// SPDX-License-Identifier: Apache-2.0

package report

import (
	"testing"

	"github.com/bidemq/bide/bench/stats"
	"github.com/bidemq/bide/internal/assert"
)

func TestNumber(t *testing.T) {
	for in, want := range map[float64]string{
		0: "0", 0.0001: "0", 0.01234: "0.012", 0.5: "0.5", 1: "1", 1.234: "1.23", 12.34: "12.3", 123.4: "123",
		999.4: "999", 999.6: "1000", 5000: "5000", 9999: "9999", 9999.9: "10k", 12_345: "12.3k", 123_456: "123k",
		1_234_567: "1235k", -0.5: "-0.5", -12_345: "-12.3k",
	} {
		assert.Equal(t, number(in), want, in)
	}
}

func TestSpread(t *testing.T) {
	assert.Equal(t, spread(stats.Summary{Median: 2, Min: 2, Max: 2, Count: 1}), "2")
	assert.Equal(t, spread(stats.Summary{Median: 2, Min: 1, Max: 3, Count: 3}), "2 (1–3)")
}
