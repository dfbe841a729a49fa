// SPDX-License-Identifier: Apache-2.0

package condition_test

import (
	"slices"
	"testing"

	"github.com/bidemq/bide/bench/condition"
	"github.com/bidemq/bide/bench/result"
	"github.com/bidemq/bide/bench/server"
	"github.com/bidemq/bide/bench/system"
	"github.com/bidemq/bide/bench/workload"
	"github.com/bidemq/bide/internal/assert"
)

func TestConditionsNameWhatThereIs(t *testing.T) {
	seen := map[string]bool{}
	usual, ok := condition.Find(condition.Usual)
	assert.True(t, ok)
	for _, c := range condition.Of(condition.Groups()) {
		assert.True(t, !seen[c.Name], c.Name)
		seen[c.Name] = true
		for _, name := range c.Workloads {
			assert.True(t, slices.ContainsFunc(workload.All(), func(w workload.Workload) bool { return w.Name == name }), name)
			assert.True(t, slices.Contains(usual.Workloads, name), "nothing to compare with", c.Name, name)
		}
		for _, name := range c.Systems {
			assert.True(t, slices.ContainsFunc(system.Bide(c.Variation), func(s system.Spec) bool { return s.Name == name }), name)
		}
	}
}

// What is not about Redis works on every engine, so also on the one that needs nothing.
func TestConditionsLoseNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	all := workload.All()
	drain := all[slices.IndexFunc(all, func(w workload.Workload) bool { return w.Name == "W2" })]
	for _, c := range condition.Of(condition.Groups()) {
		if !slices.Contains(c.Systems, "bide-embedded") {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			specs := system.Bide(c.Variation)
			memory := specs[slices.IndexFunc(specs, func(s system.Spec) bool { return s.Name == "bide-memory" })]
			host, err := server.NewHost(t.TempDir())
			assert.NoError(t, err)
			defer host.Close()
			metrics, err := drain.Run(t.Context(), memory, host, result.Settings{Seconds: 0.05, Messages: 2000}, c.Shape)
			assert.NoError(t, err)
			assert.True(t, metrics[result.Messages] > 0, metrics)
			for _, fault := range []string{result.Lost, result.Doubled, result.Early} {
				assert.Equal(t, metrics[fault], 0.0, fault)
			}
		})
	}
}
