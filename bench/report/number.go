// SPDX-License-Identifier: Apache-2.0

package report

import (
	"math"
	"strconv"
	"strings"

	"github.com/bidemq/bide/bench/stats"
)

// number with three digits that count, k for thousands from ten thousand on.
func number(v float64) string {
	suffix := ""
	if math.Abs(v) >= 9999.5 {
		v, suffix = v/1000, "k"
	}
	if math.Abs(v) >= 999.5 {
		return strconv.FormatFloat(math.Round(v), 'f', 0, 64) + suffix
	}
	if v == 0 {
		return "0" + suffix
	}
	digits := min(max(0, 2-int(math.Floor(math.Log10(math.Abs(v))))), 3)
	text := strconv.FormatFloat(v, 'f', digits, 64)
	if digits > 0 {
		text = strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
	}
	return text + suffix
}

// spread is the median, and the extremes if they look different.
func spread(s stats.Summary) string {
	low, high := number(s.Min), number(s.Max)
	if low == high {
		return number(s.Median)
	}
	return number(s.Median) + " (" + low + "–" + high + ")"
}
