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

// varied is a part of the page that compares bide with itself.
type varied struct {
	f      *result.File
	groups []condition.Group
	base   func(condition.Group) condition.Condition // that the others of a group are compared with
	more   []column                                  // beside the costs of a message
}

// underConditions is the part of the page that has the other conditions.
func underConditions(f *result.File) string {
	usual, _ := condition.Find(condition.Usual)
	v := varied{f: f, groups: condition.Groups(), base: func(condition.Group) condition.Condition { return usual }}
	return "# Under other conditions\n\n" + measured(f) + "\n" +
		fmt.Sprintf("Producers enqueue for %s s; figures are medians of up to %d repetitions. In parentheses is the difference to the usual, "+
			"which was measured in the same run: what is not used costs nothing. `make bench-conditions` repeats it, "+
			"`go run . conditions -conditions NAME,NAME` a part of it.\n\n", number(f.Settings.Seconds), f.Settings.Repetitions) +
		v.sections("## Runs under other conditions that failed")
}

// growing is the part of the page that has how costs grow.
func growing(f *result.File) string {
	v := varied{
		f: f, groups: condition.Growth(), base: func(g condition.Group) condition.Condition { return g.Conditions[0] },
		more: []column{{metric: result.Allocs, title: "allocations"}, {metric: result.Goroutines, title: "goroutines"}},
	}
	return "# Growth\n\n" + measured(f) + "\n" +
		fmt.Sprintf("Producers enqueue for %s s; figures are medians of up to %d repetitions. In parentheses is the difference to the first row. "+
			"`make bench-growth` repeats it, `go run . growth -conditions NAME,NAME` a part of it.\n\n", number(f.Settings.Seconds), f.Settings.Repetitions) +
		v.sections("## Runs of growth that failed")
}

// sections has one for each group that anything was measured of.
func (v varied) sections(failures string) string {
	var b strings.Builder
	for _, g := range v.groups {
		if g.Title == "" || !slices.ContainsFunc(g.Conditions, func(c condition.Condition) bool { return v.has(c.Name) }) {
			continue
		}
		fmt.Fprintf(&b, "## %s\n\n", g.Title)
		if g.About != "" {
			b.WriteString(g.About + "\n\n")
		}
		for _, s := range v.f.Systems {
			v.table(&b, g, s)
		}
	}
	failed(&b, v.f, failures)
	return b.String()
}

// has says whether anything was measured under a condition.
func (v varied) has(name string) bool {
	return slices.ContainsFunc(v.f.Runs, func(r result.Run) bool { return r.Condition == name && len(r.Metrics) > 0 })
}

// judgedBy says which metrics of a workload a table has.
func (v varied) judgedBy(w string) []column {
	costs := []column{
		{metric: result.Rate, title: "messages/s"},
		{metric: result.ClientCPU, title: "client CPU, µs"},
		{metric: result.ServerCPU, title: "server CPU, µs"},
	}
	switch w {
	case "W4":
		return []column{{metric: result.LagP50, title: "lag p50, ms"}, {metric: result.LagP99, title: "lag p99, ms"}, {metric: result.LagMax, title: "lag max, ms"}}
	case "waiting":
		all := []column{{metric: result.Memory, title: "bytes of memory"}}
		for _, part := range []string{result.Enqueue, result.Claim, result.Cancel} {
			for _, c := range costs {
				all = append(all, column{metric: part + c.metric, title: strings.TrimSuffix(part, "_") + " " + c.title})
			}
		}
		return all
	default:
		return append(costs, v.more...)
	}
}

// table has a row for each condition of a group on one system.
func (v varied) table(b *strings.Builder, g condition.Group, s result.System) {
	type shown struct {
		workload string
		column
	}
	var columns []shown
	for _, w := range append(workload.All(), workload.Growth()...) {
		for _, c := range v.judgedBy(w.Name) {
			if strings.HasSuffix(c.metric, result.ServerCPU) && !strings.Contains(s.Name, "redis") {
				continue
			}
			if slices.ContainsFunc(g.Conditions, func(x condition.Condition) bool { return len(v.f.Under(x.Name, s.Name, w.Name, c.metric)) > 0 }) {
				columns = append(columns, shown{w.Name, c})
			}
		}
	}
	if len(columns) == 0 {
		return
	}
	fmt.Fprintf(b, "| %s |", s.Title)
	for _, c := range columns {
		fmt.Fprintf(b, " %s |", strings.TrimPrefix(c.workload+" "+c.title, "waiting "))
	}
	b.WriteString(" lost, doubled, early |\n|---|" + strings.Repeat("---|", len(columns)+1) + "\n")
	base := v.base(g)
	rows := g.Conditions
	if rows[0].Name != base.Name {
		rows = append([]condition.Condition{base}, rows...)
	}
	for _, c := range rows {
		if !v.has(c.Name) {
			continue
		}
		fmt.Fprintf(b, "| %s |", c.Title)
		for _, col := range columns {
			fmt.Fprintf(b, " %s |", v.differing(c.Name, base.Name, s.Name, col.workload, col.metric))
		}
		fmt.Fprintf(b, " %s |\n", v.faults(c.Name, s.Name))
	}
	b.WriteString("\n")
}

// differing is a median and how it differs from that under the base: rates in percent, the rest as it
// is.
func (v varied) differing(name, base, system, workload, metric string) string {
	values := v.f.Under(name, system, workload, metric)
	if len(values) == 0 {
		return ""
	}
	here := stats.Summarize(values).Median
	others := v.f.Under(base, system, workload, metric)
	if name == base || len(others) == 0 {
		return number(here)
	}
	there := stats.Summarize(others).Median
	if strings.HasSuffix(metric, result.Rate) {
		return fmt.Sprintf("%s (%s %%)", number(here), signed(100*(here-there)/there))
	}
	return fmt.Sprintf("%s (%s)", number(here), signed(here-there))
}

func signed(v float64) string {
	if v < 0 {
		return "−" + number(-v)
	}
	return "+" + number(v)
}

// faults sums what went wrong on a system under a condition, over all workloads and repetitions.
func (v varied) faults(name, system string) string {
	var sums [3]float64
	for _, r := range v.f.Runs {
		if r.Condition == name && r.System == system {
			for i, fault := range []string{result.Lost, result.Doubled, result.Early} {
				sums[i] += r.Metrics[fault]
			}
		}
	}
	return fmt.Sprintf("%s, %s, %s", number(sums[0]), number(sums[1]), number(sums[2]))
}
