// SPDX-License-Identifier: Apache-2.0

// Package stats sums up repeated measurements.
package stats

import (
	"cmp"
	"math"
	"slices"
)

// Summary of the repetitions of one figure.
type Summary struct {
	Median, Min, Max float64
	Count            int
}

// Summarize returns the median, which is the mean of the middle two if there is an even number, and
// the extremes. No values give a zero Summary.
func Summarize(values []float64) Summary {
	if len(values) == 0 {
		return Summary{}
	}
	v := slices.Sorted(slices.Values(values))
	n := len(v)
	return Summary{Median: (v[(n-1)/2] + v[n/2]) / 2, Min: v[0], Max: v[n-1], Count: n}
}

// Percentile returns the least of the sorted values that at least p percent of them do not exceed
// (nearest rank), so that it is always one that was measured. No values give zero.
func Percentile[T cmp.Ordered](sorted []T, p float64) T {
	if len(sorted) == 0 {
		var zero T
		return zero
	}
	rank := int(math.Ceil(p / 100 * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}
