// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/bidemq/bide/bench/result"
)

// progress of a run, on standard error: a line that says how far it is, and what came of it.
type progress struct{ out io.Writer }

func newProgress(began time.Time, done, all int, p result.Run) progress {
	left := "?"
	if done > 0 {
		left = (time.Since(began) / time.Duration(done) * time.Duration(all-done)).Round(time.Second).String()
	}
	const width = 20
	bar := strings.Repeat("#", width*done/all) + strings.Repeat(".", width-width*done/all)
	pr := progress{os.Stderr}
	fmt.Fprintf(pr.out, "[%s] %3d/%d, %6s left  %-18s %-9s %-16s #%d  ", bar, done+1, all, left, p.System, p.Workload, p.Condition, p.Repetition)
	return pr
}

func (p progress) ended(r result.Run) {
	fmt.Fprintln(p.out, brief(r))
}

// brief is the one figure of a run that says most, and what went wrong.
func brief(r result.Run) string {
	if r.Error != "" {
		return "FAILED: " + r.Error
	}
	var text string
	for _, m := range []struct{ name, format string }{
		{result.Rate, "%.0f messages/s"},
		{result.Claim + result.Rate, "%.0f messages/s claimed"},
		{result.LagP99, "%.1f ms p99 lag"},
		{result.BurstLast, "%.0f ms to the last"},
		{result.Memory, "%.0f bytes of memory a message"},
		{result.Disk, "%.0f bytes of disk a message"},
		{result.IdleRedis, "%.1f Redis commands/s"},
		{result.IdleClient, "%.2f %% client CPU"},
	} {
		if v, ok := r.Metrics[m.name]; ok {
			text = fmt.Sprintf(m.format, v)
			break
		}
	}
	for _, name := range []string{result.Lost, result.Doubled, result.Early} {
		if n := r.Metrics[name]; n > 0 {
			text += fmt.Sprintf(", %.0f %s", n, name)
		}
	}
	return text
}
