// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"html"
	"math"
	"strings"

	"github.com/bidemq/bide/bench/result"
	"github.com/bidemq/bide/bench/stats"
)

// bar of a chart.
type bar struct {
	title string
	kind  result.Kind
	value stats.Summary
}

// Sizes of a chart in pixels.
const (
	chartWidth = 860
	chartTop   = 46
	barHeight  = 20
	barPitch   = 30
	barLeft    = 210 // of it stands the title
	barWidth   = 480 // of the longest
)

var colors = map[result.Kind]string{result.Bide: "#1d5fbf", result.Ceiling: "#9aa3ad", result.Peer: "#d9822b"}

// chart draws horizontal bars of the medians, with a line from the least to the greatest, on paper of
// its own so that it is readable on dark pages too.
func chart(f figure, bars []bar) string {
	length := scale(f, bars)
	var b strings.Builder
	height := chartTop + barPitch*len(bars) + 8
	better := "more is better"
	if f.lower {
		better = "less is better"
	}
	if f.log {
		better += ", logarithmic"
	}
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" font-family="sans-serif" font-size="13">`+"\n",
		chartWidth, height, chartWidth, height)
	title := html.EscapeString(f.workload + ": " + f.title)
	fmt.Fprintf(&b, "<title>%s</title>\n<rect width=\"100%%\" height=\"100%%\" rx=\"6\" fill=\"#ffffff\"/>\n", title)
	fmt.Fprintf(&b, `<text x="12" y="24" font-size="15" font-weight="bold" fill="#1b1f24">%s</text>`+"\n", title)
	fmt.Fprintf(&b, `<text x="%d" y="24" text-anchor="end" fill="#57606a">%s, %s</text>`+"\n", chartWidth-12, html.EscapeString(f.unit), better)
	for i, bar := range bars {
		y := chartTop + i*barPitch
		middle := y + barHeight/2
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end" fill="#1b1f24">%s</text>`+"\n", barLeft-10, middle+5, html.EscapeString(bar.title))
		fmt.Fprintf(&b, `<rect x="%d" y="%d" width="%.1f" height="%d" rx="2" fill="%s"/>`+"\n",
			barLeft, y, length(bar.value.Median), barHeight, colors[bar.kind])
		end := max(length(bar.value.Median), length(bar.value.Max))
		if bar.value.Count > 1 {
			fmt.Fprintf(&b, `<line x1="%.1f" x2="%.1f" y1="%d" y2="%d" stroke="#1b1f24" stroke-width="1.5"/>`+"\n",
				barLeft+length(bar.value.Min), barLeft+length(bar.value.Max), middle, middle)
		}
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" fill="#1b1f24">%s</text>`+"\n", barLeft+end+8, middle+5, html.EscapeString(spread(bar.value)))
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// scale returns how long the bar of a value is. On a logarithmic scale the least positive value that
// is shown gets a short bar, and what is not positive none.
func scale(f figure, bars []bar) func(float64) float64 {
	most, least := 0.0, math.Inf(1)
	for _, b := range bars {
		most = max(most, b.value.Max)
		if b.value.Min > 0 {
			least = min(least, b.value.Min)
		}
	}
	if most <= 0 {
		return func(float64) float64 { return 0 }
	}
	if !f.log {
		return func(v float64) float64 { return barWidth * max(v, 0) / most }
	}
	floor := math.Log10(least) - 0.2
	return func(v float64) float64 {
		if v <= 0 {
			return 0
		}
		return barWidth * max(0, math.Log10(v)-floor) / (math.Log10(most) - floor)
	}
}
