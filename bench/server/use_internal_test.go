// SPDX-License-Identifier: Apache-2.0

package server

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/bidemq/bide/internal/assert"
)

func TestParseStat(t *testing.T) {
	got, err := parseStat("42 (a) name) S 1 42 42 0 -1 4194560 77 0 0 0 150 25 3 2 20 0 4 0 99 1 2")
	assert.NoError(t, err)
	assert.True(t, got == stat{parent: 1, cpu: 1800 * time.Millisecond}, got)

	for _, bad := range []string{"", "42 (a) S 1", "42 (a) S 1 42 42 0 -1 4194560 77 0 0 0 x 25 0 0", "42 (a) S x 42 42 0 -1 4194560 77 0 0 0 1 25 0 0"} {
		_, err := parseStat(bad)
		assert.True(t, err != nil, bad)
	}
}

// A shell that waits for a loop which it has started: the time is the loop's.
func TestCPUOfDescendants(t *testing.T) {
	p, err := start(filepath.Join(t.TempDir(), "log"), Program{Path: "sh"}, []string{"-c", "(while :; do :; done) & wait"}, nil, nil)
	assert.NoError(t, err)
	defer p.end()
	defer func() { _ = syscall.Kill(-p.pid(), syscall.SIGKILL) }() // the loop, too, which is in its group
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(10 * time.Second); ; <-tick.C {
		cpu, err := processCPU(p.pid())
		assert.NoError(t, err)
		if cpu >= 50*time.Millisecond {
			break
		}
		assert.True(t, time.Now().Before(deadline), "no time was counted")
	}
}

func TestProcessCPUOfOneself(t *testing.T) {
	_, err := processCPU(os.Getpid())
	assert.NoError(t, err)
}

func TestParseInfo(t *testing.T) {
	got, err := parseInfo("# Memory\r\nused_memory:1024\r\nused_memory_rss:5\r\ntotal_reads_processed:7\r\n" +
		"cmdstat_info:calls=3,usec=1\r\ncmdstat_evalsha:calls=10,usec=5,usec_per_call=0.5\r\ncmdstat_config|get:calls=2,usec=1\r\n")
	assert.NoError(t, err)
	assert.Equal(t, got, Info{Commands: 12, Reads: 7, UsedMemory: 1024})

	_, err = parseInfo("used_memory:many\r\n")
	assert.True(t, err != nil)
}
