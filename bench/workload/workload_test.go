// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/bench/ledger"
	"github.com/bidemq/bide/bench/result"
	"github.com/bidemq/bide/bench/server"
	"github.com/bidemq/bide/bench/system"
	"github.com/bidemq/bide/bench/workload"
	"github.com/bidemq/bide/internal/assert"
)

// Every workload runs on an engine that needs no server, and finds nothing wrong with it.
func TestWorkloads(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	all := system.All()
	memory := all[slices.IndexFunc(all, func(s system.Spec) bool { return s.Name == "bide-memory" })]
	settings := result.Settings{Seconds: 0.05, LagSeconds: 0.2, IdleSeconds: 0.2, Messages: 2000}
	for _, w := range workload.All() {
		if !w.Suits(memory) {
			continue
		}
		t.Run(w.Name, func(t *testing.T) {
			t.Parallel()
			host, err := server.NewHost(t.TempDir())
			assert.NoError(t, err)
			defer host.Close()
			metrics, err := w.Run(t.Context(), memory, host, settings, workload.Shape{})
			assert.NoError(t, err)
			assert.True(t, metrics[result.Messages] > 0, metrics)
			for _, fault := range []string{result.Lost, result.Doubled, result.Early} {
				assert.Equal(t, metrics[fault], 0.0, fault)
			}
		})
	}
}

// The workload with many waiting messages takes those alone that it was given.
func TestWaiting(t *testing.T) {
	specs := system.Bide(system.Variation{Edit: func(i int, m *bide.Message) { m.ID = workload.ID(i) }})
	memory := specs[slices.IndexFunc(specs, func(s system.Spec) bool { return s.Name == "bide-memory" })]
	host, err := server.NewHost(t.TempDir())
	assert.NoError(t, err)
	defer host.Close()
	shape := workload.Shape{Body: ledger.Least, Waiting: 1000}
	metrics, err := workload.Growth()[0].Run(t.Context(), memory, host, result.Settings{Seconds: 0.05, Messages: 2000}, shape)
	assert.NoError(t, err)
	assert.Equal(t, metrics[result.Messages], 1000.0)
	for _, part := range []string{result.Enqueue, result.Claim, result.Cancel} {
		assert.True(t, metrics[part+result.Rate] > 0, part, metrics)
	}
	for _, fault := range []string{result.Lost, result.Doubled, result.Early} {
		assert.Equal(t, metrics[fault], 0.0, fault)
	}
}

// Every system that can be started here hands out what it was given, once.
func TestSystems(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	all := workload.All()
	flow := all[slices.IndexFunc(all, func(w workload.Workload) bool { return w.Name == "W3-16" })]
	for _, s := range system.All() {
		if strings.HasPrefix(s.Name, "nats-") { // its server is the program bench
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			if err := s.Available(); err != nil {
				t.Skip(err)
			}
			dir := t.TempDir()
			assert.NoError(t, os.Chmod(filepath.Dir(dir), 0o755)) // PostgreSQL runs as somebody else
			host, err := server.NewHost(dir)
			assert.NoError(t, err)
			defer host.Close()
			metrics, err := flow.Run(t.Context(), s, host, result.Settings{Seconds: 0.05}, workload.Shape{})
			assert.NoError(t, err)
			assert.True(t, metrics[result.Messages] > 0, metrics)
			for _, fault := range []string{result.Lost, result.Doubled, result.Early} {
				assert.Equal(t, metrics[fault], 0.0, fault)
			}
		})
	}
}

func TestNamesAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, w := range workload.All() {
		assert.True(t, !seen[w.Name], w.Name)
		seen[w.Name] = true
	}
	for _, s := range system.All() {
		assert.True(t, !seen[s.Name], s.Name)
		seen[s.Name] = true
		for _, skip := range s.Skip {
			assert.True(t, slices.ContainsFunc(workload.All(), func(w workload.Workload) bool { return w.Name == skip }), skip)
		}
	}
}
