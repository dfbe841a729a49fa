// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"fmt"

	"github.com/bidemq/bide/bench/system"
	"github.com/bidemq/bide/bench/workload"
	"github.com/bidemq/bide/storage"
)

// queues that one consumer has.
func queues() Group {
	var all []Condition
	for _, n := range []int{8, 64, 1024} {
		all = append(all, Condition{
			Name: fmt.Sprintf("queues-%d", n), Title: fmt.Sprintf("%d queues", n), Systems: both, Workloads: []string{"W2", "W3-512"},
			Shape:     workload.Shape{Queues: n},
			Variation: system.Variation{Config: storage.ConfigEdit{Paused: new(false)}}, // so that they exist before the time is taken
		})
	}
	return Group{
		Title: "How many queues one consumer has", Conditions: all,
		About: "Messages are spread over them evenly, and one consumer with 64 handlers has them all. With many queues there are fewer messages " +
			"of one queue to travel together.",
	}
}

// bodies of other sizes.
func bodies() Group {
	var all []Condition
	for _, b := range []struct {
		bytes int
		title string
	}{{16, "bodies of 16 bytes"}, {4 << 10, "bodies of 4 KiB"}, {64 << 10, "bodies of 64 KiB"}} {
		all = append(all, Condition{
			Name: fmt.Sprintf("body-%d", b.bytes), Title: b.title, Systems: both, Workloads: loads, Shape: workload.Shape{Body: b.bytes},
		})
	}
	return Group{Title: "Sizes of bodies", Conditions: all}
}
