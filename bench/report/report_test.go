// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bidemq/bide/bench/report"
	"github.com/bidemq/bide/bench/result"
	"github.com/bidemq/bide/internal/assert"
)

// forged results: every number on the page must be one of these or follow from them.
func forged() *result.File {
	run := func(system, workload string, repetition int, metrics map[string]float64) result.Run {
		return result.Run{System: system, Workload: workload, Repetition: repetition, Load: float64(repetition), Metrics: metrics}
	}
	rate := func(v float64) map[string]float64 { return map[string]float64{result.Rate: v, result.Lost: 0} }
	return &result.File{
		Began:    time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC),
		Ended:    time.Date(2030, 1, 2, 3, 6, 5, 0, time.UTC),
		Commit:   "abc123",
		Machine:  result.Machine{CPU: "Abacus <9>", Cores: 2, Memory: 4 << 30, Load: 0.1, Sync: 250 * time.Microsecond, Versions: map[string]string{"redis-server": "9.8.7"}},
		Settings: result.Settings{Seconds: 1, Repetitions: 3},
		Systems: []result.System{
			{Name: "bide-redis", Title: "bide on Redis", Kind: result.Bide},
			{Name: "bide-embedded", Title: "bide embedded", Kind: result.Bide},
			{Name: "ceiling-redis", Title: "ceiling", Kind: result.Ceiling},
			{Name: "asynq-tuned", Title: "asynq & more", Kind: result.Peer},
		},
		Runs: []result.Run{
			run("bide-redis", "W2", 1, map[string]float64{result.Rate: 30_000, result.Lost: 1}),
			run("bide-redis", "W2", 2, map[string]float64{result.Rate: 20_000, result.Lost: 2}),
			run("bide-redis", "W2", 3, rate(40_000)),
			run("bide-embedded", "W2", 1, rate(4_000)),
			run("ceiling-redis", "W2", 1, rate(60_000)),
			run("asynq-tuned", "W2", 1, rate(5_000)),
			run("bide-embedded", "W1-16", 1, rate(6_400)), // the disk would allow 16/0.25 ms = 64,000
			run("bide-redis", "W4", 1, map[string]float64{result.LagP99: 12}),
			run("asynq-tuned", "W4", 1, map[string]float64{result.LagP99: 3, result.LagMin: -500, result.EarlyShare: 0.5}),
			{System: "asynq-tuned", Workload: "W5", Repetition: 1, Error: "no\nroom"},
		},
	}
}

func TestPage(t *testing.T) {
	text, charts := report.Page(report.Files{Main: forged()}, "benchmarks")
	for _, want := range []string{
		"on 2030-01-02, 03:04 UTC, at commit abc123 in 2m0s, on Abacus <9>, 2 cores, 4 GiB",
		"0.25 ms to append",
		"The machine was idle: its load average was 0.1",
		"it was 0 to 3", // the load between the runs
		"| bide on Redis | 30k (20k–40k) | 3 |",
		"| W2 drained, 64 handlers | 30k/s | 50 % | 6 |", // of the ceiling, times asynq
		"bide embedded, enqueued one by one, 16 producers: 6400/s, which is 10 % of 16 producers divided by",
		"- Ahead of **bide on Redis**:\n  - W4 lag of 99 % of the messages, at most (ms): asynq & more 3, against 12\n",
		"- Ahead of **bide embedded**:\n  - W2 drained, 64 handlers (messages/s): asynq & more 5000, against 4000\n",
		"| asynq & more | 3 | -500 | 0.5 |",
		"- asynq & more, W5, repetition 1: no room",
		"| redis-server | 9.8.7 |",
		"![drained, 64 handlers](benchmarks/W2-messages_per_second.svg)",
	} {
		assert.True(t, strings.Contains(text, want), "misses: "+want+"\n"+text)
	}
	assert.Equal(t, len(charts), 2)
	assert.True(t, strings.Contains(charts["W2-messages_per_second.svg"], "30k (20k–40k)"))
}

func TestABusyMachineIsSaidToBe(t *testing.T) {
	f := forged()
	f.Machine.Load = 1.5
	text, _ := report.Page(report.Files{Main: f}, "benchmarks")
	assert.True(t, strings.Contains(text, "**The machine was not idle**: its load average was 1.5"), text)
}

func TestChartsAreXML(t *testing.T) {
	_, charts := report.Page(report.Files{Main: forged()}, "benchmarks")
	for name, svg := range charts {
		dec := xml.NewDecoder(strings.NewReader(svg))
		for {
			_, err := dec.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			assert.NoError(t, err, name)
		}
	}
}

func TestNothingMeasuredIsNoPanic(t *testing.T) {
	text, charts := report.Page(report.Files{Main: &result.File{}}, "x")
	assert.True(t, strings.Contains(text, "# Benchmarks"))
	assert.Equal(t, len(charts), 0)
}

func TestWriteAfterReadingBack(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "results.json")
	assert.NoError(t, forged().Write(name))
	f, err := result.Read(name)
	assert.NoError(t, err)
	assert.Equal(t, f, forged())

	page := filepath.Join(dir, "benchmarks.md")
	assert.NoError(t, report.Write(report.Files{Main: f}, page))
	got, err := os.ReadFile(page)
	assert.NoError(t, err)
	want, charts := report.Page(report.Files{Main: forged()}, "benchmarks")
	assert.Equal(t, string(got), want)
	kept, err := result.Read(filepath.Join(dir, "benchmarks", "results.json"))
	assert.NoError(t, err)
	assert.Equal(t, kept, f)
	for chart := range charts {
		_, err := os.Stat(filepath.Join(dir, "benchmarks", chart))
		assert.NoError(t, err)
	}
}
