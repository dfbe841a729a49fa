// SPDX-License-Identifier: Apache-2.0

// Package condition has the conditions that bide is measured under besides the usual ones: what it is
// given, where its server is, and what of it is used.
package condition

import (
	"slices"

	"github.com/bidemq/bide/bench/system"
	"github.com/bidemq/bide/bench/workload"
)

// Condition that differs from the usual one in one thing.
type Condition struct {
	Name      string // as on the command line
	Title     string // as in the report
	Workloads []string
	Systems   []string // of system.Bide
	Shape     workload.Shape
	Variation system.Variation
	Once      bool // is not repeated, because it takes long
}

// Group of conditions that are reported together, after the usual one.
type Group struct {
	Title      string
	About      string
	Conditions []Condition
}

// Usual is the condition that the others are compared with.
const Usual = "usual"

// usual is measured with every workload that any condition has.
func usual() Group {
	return Group{Conditions: []Condition{
		{Name: Usual, Title: "the usual: one queue, bodies of 256 bytes, nothing else", Workloads: []string{"W1-16", "W1-512", "W2", "W3-512", "W4"}, Systems: both},
	}}
}

// Groups of all conditions; the first is the usual one alone.
func Groups() []Group {
	return []Group{usual(), features(), queues(), bodies(), distance(), persistence()}
}

// Of all groups, their conditions.
func Of(groups []Group) []Condition {
	var all []Condition
	for _, g := range groups {
		all = append(all, g.Conditions...)
	}
	return all
}

// Find a condition by its name.
func Find(name string) (Condition, bool) {
	all := append(Of(Groups()), Of(Growth())...)
	i := slices.IndexFunc(all, func(c Condition) bool { return c.Name == name })
	if i < 0 {
		return Condition{}, false
	}
	return all[i], true
}

var (
	both    = []string{"bide-redis", "bide-embedded"}
	onRedis = []string{"bide-redis"}
	loads   = []string{"W1-512", "W2", "W3-512"}
)
