// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"

	"github.com/bidemq/bide/bench/result"
	"github.com/bidemq/bide/bench/stats"
)

// median of a figure on a system, and whether there is one.
func median(f *result.File, system string, g figure) (float64, bool) {
	s := stats.Summarize(f.Values(system, g.workload, g.metric))
	return s.Median, s.Count > 0
}

// title of a system, "" if it was not measured.
func title(f *result.File, name string) string {
	for _, s := range f.Systems {
		if s.Name == name {
			return s.Title
		}
	}
	return ""
}

// comparison of one system of ours with its ceiling and some peers.
type comparison struct {
	ours    string
	ceiling string
	peers   []string
}

var comparisons = []comparison{
	{"bide-redis", "ceiling-redis", []string{"asynq-tuned", "asynq-default", "nats-memory"}},
	{"bide-embedded", "ceiling-embedded", []string{"beanstalkd-synced", "river-tuned"}},
	{"bide-relaxed", "ceiling-relaxed", []string{"beanstalkd-memory", "nats-file"}},
}

// ratios says how a system of ours stands to its ceiling and to peers, figure by figure. It is empty
// without any of them.
func ratios(f *result.File, c comparison) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| | %s |", title(f, c.ours))
	var shown []string
	for _, o := range append([]string{c.ceiling}, c.peers...) {
		t := title(f, o)
		switch {
		case t == "":
			continue
		case o == c.ceiling:
			fmt.Fprintf(&b, " share of the %s |", t)
		default:
			fmt.Fprintf(&b, " times %s |", t)
		}
		shown = append(shown, o)
	}
	if len(shown) == 0 || title(f, c.ours) == "" {
		return ""
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(shown)+1) + "\n")
	for _, g := range figures {
		mine, ok := median(f, c.ours, g)
		if !ok || g.metric != result.Rate {
			continue
		}
		fmt.Fprintf(&b, "| %s %s | %s/s |", g.workload, g.title, number(mine))
		for _, o := range shown {
			theirs, ok := median(f, o, g)
			switch {
			case !ok || theirs == 0:
				b.WriteString(" |")
			case o == c.ceiling:
				fmt.Fprintf(&b, " %s %% |", number(100*mine/theirs))
			default:
				fmt.Fprintf(&b, " %s |", number(mine/theirs))
			}
		}
		b.WriteString("\n")
	}
	return b.String() + "\n"
}

// short is what stands at the head of the page.
func short(f *result.File) string {
	var text string
	for _, c := range comparisons {
		text += ratios(f, c)
	}
	if text == "" {
		return ""
	}
	if line := synced(f); line != "" {
		text += line + "\n"
	}
	return "## In short\n\n" + text
}

// synced says how the engine that syncs stands to a disk that serves every producer with one sync.
func synced(f *result.File) string {
	const producers = 16
	for _, g := range figures {
		rate, ok := median(f, "bide-embedded", g)
		if g.workload != "W1-16" || !ok || f.Machine.Sync <= 0 {
			continue
		}
		most := producers / f.Machine.Sync.Seconds()
		return fmt.Sprintf("%s, %s: %s/s, which is %s %% of %d producers divided by the time of one sync.\n",
			title(f, "bide-embedded"), g.title, number(rate), number(100*rate/most), producers)
	}
	return ""
}

// lost lists every figure in which a peer is ahead of bide on one of its engines. The engine in
// memory is left out: it is made for tests.
func lost(f *result.File) string {
	var b strings.Builder
	for _, ours := range f.Systems {
		if ours.Kind != result.Bide || ours.Name == "bide-memory" {
			continue
		}
		var lines []string
		for _, g := range figures {
			mine, ok := median(f, ours.Name, g)
			if !ok {
				continue
			}
			var ahead []string
			for _, peer := range f.Systems {
				theirs, ok := median(f, peer.Name, g)
				if ok && peer.Kind == result.Peer && (g.lower && theirs < mine || !g.lower && theirs > mine) {
					ahead = append(ahead, fmt.Sprintf("%s %s", peer.Title, number(theirs)))
				}
			}
			if len(ahead) > 0 {
				lines = append(lines, fmt.Sprintf("  - %s %s (%s): %s, against %s", g.workload, g.title, g.unit, strings.Join(ahead, "; "), number(mine)))
			}
		}
		if len(lines) == 0 {
			fmt.Fprintf(&b, "- **%s**: no peer measured here is ahead in any figure.\n", ours.Title)
			continue
		}
		fmt.Fprintf(&b, "- Ahead of **%s**:\n%s\n", ours.Title, strings.Join(lines, "\n"))
	}
	return b.String()
}
