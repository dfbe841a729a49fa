// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bidemq/bide/bench/condition"
	"github.com/bidemq/bide/bench/result"
	"github.com/bidemq/bide/bench/stats"
	"github.com/bidemq/bide/bench/workload"
)

// judgedBy says which metrics of a workload a table under conditions has, and how their difference to
// the usual is given.
func judgedBy(w string) []column {
	if w == "W4" {
		return []column{{metric: result.LagP50, title: "lag p50, ms"}, {metric: result.LagP99, title: "lag p99, ms"}, {metric: result.LagMax, title: "lag max, ms"}}
	}
	return []column{
		{metric: result.Rate, title: "messages/s"},
		{metric: result.ClientCPU, title: "client CPU, µs"},
		{metric: result.ServerCPU, title: "server CPU, µs"},
	}
}

// underConditions is the part of the page that has the other conditions.
func underConditions(f *result.File) string {
	var b strings.Builder
	b.WriteString("# Under other conditions\n\n")
	b.WriteString(measured(f) + "\n")
	fmt.Fprintf(&b, "Producers enqueue for %s s; %d repetitions, of which the median is given. In parentheses is the difference to the usual, "+
		"which was measured in the same run: what is not used costs nothing. `make bench-conditions` repeats it, `go run . conditions -conditions NAME` a part of it.\n\n",
		number(f.Settings.Seconds), f.Settings.Repetitions)
	for _, g := range condition.Groups() {
		if g.Title == "" || !slices.ContainsFunc(g.Conditions, func(c condition.Condition) bool { return has(f, c.Name) }) {
			continue
		}
		fmt.Fprintf(&b, "## %s\n\n", g.Title)
		if g.About != "" {
			b.WriteString(g.About + "\n\n")
		}
		for _, s := range f.Systems {
			groupTable(&b, f, g, s)
		}
	}
	failed(&b, f, "## Runs under other conditions that failed")
	return b.String()
}

// has says whether anything was measured under a condition.
func has(f *result.File, name string) bool {
	return slices.ContainsFunc(f.Runs, func(r result.Run) bool { return r.Condition == name && len(r.Metrics) > 0 })
}

// groupTable has a row for each condition of a group on one system.
func groupTable(b *strings.Builder, f *result.File, g condition.Group, s result.System) {
	type shown struct {
		workload string
		column
	}
	var columns []shown
	for _, w := range workload.All() {
		for _, c := range judgedBy(w.Name) {
			if c.metric == result.ServerCPU && !strings.Contains(s.Name, "redis") {
				continue
			}
			if slices.ContainsFunc(g.Conditions, func(x condition.Condition) bool { return len(f.Under(x.Name, s.Name, w.Name, c.metric)) > 0 }) {
				columns = append(columns, shown{w.Name, c})
			}
		}
	}
	if len(columns) == 0 {
		return
	}
	fmt.Fprintf(b, "| %s |", s.Title)
	for _, c := range columns {
		fmt.Fprintf(b, " %s %s |", c.workload, c.title)
	}
	b.WriteString(" lost, doubled, early |\n|---|" + strings.Repeat("---|", len(columns)+1) + "\n")
	usual, _ := condition.Find(condition.Usual)
	for _, c := range append([]condition.Condition{usual}, g.Conditions...) {
		if !has(f, c.Name) {
			continue
		}
		fmt.Fprintf(b, "| %s |", c.Title)
		for _, col := range columns {
			fmt.Fprintf(b, " %s |", differing(f, c.Name, s.Name, col.workload, col.metric))
		}
		fmt.Fprintf(b, " %s |\n", faults(f, c.Name, s.Name))
	}
	b.WriteString("\n")
}

// differing is a median and how it differs from the usual: rates in percent, the rest as it is.
func differing(f *result.File, name, system, workload, metric string) string {
	values := f.Under(name, system, workload, metric)
	if len(values) == 0 {
		return ""
	}
	v := stats.Summarize(values).Median
	base := f.Under(condition.Usual, system, workload, metric)
	if name == condition.Usual || len(base) == 0 {
		return number(v)
	}
	u := stats.Summarize(base).Median
	if metric == result.Rate {
		return fmt.Sprintf("%s (%s %%)", number(v), signed(100*(v-u)/u))
	}
	return fmt.Sprintf("%s (%s)", number(v), signed(v-u))
}

func signed(v float64) string {
	if v < 0 {
		return "−" + number(-v)
	}
	return "+" + number(v)
}

// faults sums what went wrong on a system under a condition, over all workloads and repetitions.
func faults(f *result.File, name, system string) string {
	var sums [3]float64
	for _, r := range f.Runs {
		if r.Condition == name && r.System == system {
			for i, name := range []string{result.Lost, result.Doubled, result.Early} {
				sums[i] += r.Metrics[name]
			}
		}
	}
	return fmt.Sprintf("%s, %s, %s", number(sums[0]), number(sums[1]), number(sums[2]))
}
