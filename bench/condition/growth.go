// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"fmt"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/bench/ledger"
	"github.com/bidemq/bide/bench/system"
	"github.com/bidemq/bide/bench/workload"
)

// Growth has the groups of conditions in which there is ever more of something. The first of each is
// what the others are compared with.
func Growth() []Group { return []Group{waiting(), consumers()} }

// waiting messages, ever more of them, with the smallest bodies.
func waiting() Group {
	var all []Condition
	for _, n := range []struct {
		messages int
		title    string
	}{{1000, "10³ waiting"}, {100_000, "10⁵ waiting"}, {10_000_000, "10⁷ waiting"}} {
		all = append(all, Condition{
			Name: fmt.Sprintf("waiting-%d", n.messages), Title: n.title, Systems: both, Workloads: []string{"waiting"},
			Shape:     workload.Shape{Body: ledger.Least, Waiting: n.messages},
			Variation: system.Variation{Edit: func(i int, m *bide.Message) { m.ID = workload.ID(i) }},
			Once:      n.messages > 1_000_000,
		})
	}
	return Group{
		Title: "Messages that wait for their time", Conditions: all,
		About: fmt.Sprintf("So many delayed messages with bodies of %d bytes are in the queue while 512 producers enqueue others that are due among them, "+
			"64 handlers work off others that are due now, and 512 callers cancel some of them by their ids.", ledger.Least),
	}
}

// consumers of one queue, ever more of them.
func consumers() Group {
	var all []Condition
	for _, n := range []int{1, 4, 16, 64} {
		title := fmt.Sprintf("%d consumers", n)
		if n == 1 {
			title = "1 consumer"
		}
		all = append(all, Condition{
			Name: fmt.Sprintf("consumers-%d", n), Title: title, Systems: both, Workloads: []string{"W2", "W3-512"},
			Variation: system.Variation{Consumers: n},
		})
	}
	return Group{
		Title: "Consumers of one queue", Conditions: all,
		About: "Each has 64 handlers, and on Redis a Store, and so connections, of its own; a directory has one Store. All of them are in one process.",
	}
}
