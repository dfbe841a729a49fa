// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"fmt"
	"time"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/bench/system"
	"github.com/bidemq/bide/storage"
)

// keys is how many keys messages have, where they have any.
const keys = 1000

// large is a bound that is looked at and never met.
const large = 10_000_000

// features switched on one at a time.
func features() Group {
	var all []Condition
	for _, f := range []struct {
		name, title string
		config      storage.ConfigEdit
		edit        func(int, *bide.Message)
	}{
		{name: "headers", title: "three headers", edit: headers()},
		{name: "priorities", title: "all ten priorities in turn", edit: func(i int, m *bide.Message) { m.Priority = i % (storage.MaxPriority + 1) }},
		{name: "keys", title: fmt.Sprintf("%d keys in turn", keys), edit: keyed()},
		{name: "ordered", title: fmt.Sprintf("%d keys in turn, Ordered", keys), config: storage.ConfigEdit{Ordered: new(true)}, edit: keyed()},
		{name: "max-len", title: "MaxLen, never reached", config: storage.ConfigEdit{MaxLen: new(large)}},
		{
			name: "max-per-key", title: fmt.Sprintf("%d keys in turn, MaxPerKey, never reached", keys),
			config: storage.ConfigEdit{MaxPerKey: new(large)}, edit: keyed(),
		},
		{name: "retention", title: "RetainCount of 10,000", config: storage.ConfigEdit{RetainCount: new(10_000)}},
		{name: "dedup", title: "DedupFor of a minute", edit: func(_ int, m *bide.Message) { m.DedupFor = time.Minute }},
		{name: "expiry", title: "ExpireIn of an hour", edit: func(_ int, m *bide.Message) { m.ExpireIn = time.Hour }},
	} {
		all = append(all, Condition{
			Name: f.name, Title: f.title, Systems: both, Workloads: []string{"W1-512", "W2"},
			Variation: system.Variation{Config: f.config, Edit: f.edit},
		})
	}
	return Group{
		Title: "What each feature costs", Conditions: all,
		About: "Each is switched on alone. What is in parentheses is the difference to the usual.",
	}
}

// headers that every message shares.
func headers() func(int, *bide.Message) {
	all := map[string]string{"content-type": "application/json", "trace": "4bf92f3577b34da6a3ce929d0e0e4736", "tenant": "42"}
	return func(_ int, m *bide.Message) { m.Headers = all }
}

// keyed gives messages their keys in turn.
func keyed() func(int, *bide.Message) {
	names := make([]string, keys)
	for i := range names {
		names[i] = fmt.Sprintf("key-%03d", i)
	}
	return func(i int, m *bide.Message) { m.Key = names[i%keys] }
}
