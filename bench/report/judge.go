// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bidemq/bide/bench/result"
	"github.com/bidemq/bide/bench/stats"
)

// value of a target, and whether everything that it needs was measured.
func (t target) value(f *result.File) (float64, bool) {
	own, ok := t.of(f, t.system)
	if !ok || t.over == "" {
		return own, ok
	}
	other, ok := t.of(f, t.over)
	if !ok || other == 0 {
		return 0, false
	}
	if t.unit == "%" {
		return 100 * own / other, true
	}
	return own / other, true
}

// of a system, what the target is about.
func (t target) of(f *result.File, system string) (float64, bool) {
	values := f.Values(system, t.workload, t.metric)
	if len(values) == 0 {
		return 0, false
	}
	if t.worst {
		return slices.Max(values), true
	}
	sum := stats.Summarize(values).Median
	if t.plus != "" {
		more := f.Values(system, t.workload, t.plus)
		if len(more) == 0 {
			return 0, false
		}
		sum += stats.Summarize(more).Median
	}
	return sum, true
}

// met says whether a value is what the target wants.
func (t target) met(v float64) bool {
	if t.least > 0 {
		return v >= t.least
	}
	return v <= t.most
}

// wanted in words.
func (t target) wanted() string {
	if t.least > 0 {
		return "at least " + number(t.least) + unit(t.unit)
	}
	return "at most " + number(t.most) + unit(t.unit)
}

// unit as it stands behind a number.
func unit(u string) string {
	if u == "" || strings.HasPrefix(u, "/") {
		return u
	}
	return " " + u
}

// command that measures what the target needs and nothing else.
func (t target) command() string {
	systems := t.system
	if t.over != "" {
		systems += "," + t.over
	}
	return fmt.Sprintf("`go run . run -systems %s -workloads %s`", systems, t.workload)
}

// judged is a section with every target and whether it was met.
func judged(f *result.File) string {
	if title(f, "bide-redis")+title(f, "bide-embedded") == "" {
		return ""
	}
	var b strings.Builder
	b.WriteString("## Targets\n\nSet before anything was measured, for an idle machine of two cores with servers, producers and consumers on it. " +
		"The commands are for the folder `bench`; `go run . report` then makes a page like this one.\n\n")
	met, measured := 0, 0
	var rows strings.Builder
	for _, group := range []struct {
		title   string
		targets []target
	}{
		{"By itself", cells()},
		{"Of what the store allows", shares()},
		{"Against peers, and what a message costs", againstPeers()},
	} {
		fmt.Fprintf(&rows, "| **%s** | | | | |\n", group.title)
		for _, t := range group.targets {
			v, ok := t.value(f)
			if !ok {
				fmt.Fprintf(&rows, "| %s | | %s | not measured | %s |\n", t.name(f), t.wanted(), t.command())
				continue
			}
			measured++
			verdict := "**not met**"
			if t.met(v) {
				met++
				verdict = "met"
			}
			fmt.Fprintf(&rows, "| %s | %s%s | %s | %s | %s |\n", t.name(f), number(v), unit(t.unit), t.wanted(), verdict, t.command())
		}
	}
	fmt.Fprintf(&b, "%d of %d that were measured are met.\n\n| | figure | target | | command |\n|---|---|---|---|---|\n%s", met, measured, rows.String())
	return b.String()
}

// name of a target: the workload, the system and what of it.
func (t target) name(f *result.File) string {
	name := title(f, t.system)
	if name == "" {
		name = t.system
	}
	if t.what != "" {
		name += ", " + t.what
	}
	return t.workload + " " + name
}
