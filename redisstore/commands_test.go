// SPDX-License-Identifier: Apache-2.0

package redisstore_test

import (
	"fmt"
	"testing"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/storage"
)

// What a call costs is the number of commands that its script runs, whatever the queue holds: the
// table in docs/redis-layout.md. A change may lower them.
func TestCommandsOfACall(t *testing.T) {
	t.Parallel()
	for _, kind := range []struct {
		name   string
		config storage.ConfigEdit
		keys   string
		want   [6]int // one enqueued, claimed, acknowledged; a hundred of one key
	}{
		{"plain", storage.ConfigEdit{}, "", [6]int{7, 9, 7, 7, 9, 7}},
		{"keyless in a whole queue", storage.ConfigEdit{KeyLimit: new(5)}, "", [6]int{9, 14, 9, 9, 14, 9}},
		{"keyed", storage.ConfigEdit{}, "k", [6]int{16, 23, 13, 16, 21, 13}},
		{"ordered", storage.ConfigEdit{Ordered: new(true)}, "k", [6]int{17, 24, 17, 17, 24, 17}},
		{"bounded", storage.ConfigEdit{MaxLen: new(1_000_000), MaxPerKey: new(100_000)}, "k", [6]int{18, 23, 13, 18, 21, 13}},
	} {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			b := newBounded(t, kind.config)
			key := func(i int) string {
				if kind.keys == "" {
					return ""
				}
				return fmt.Sprint(kind.keys, i)
			}
			var recs []storage.Record
			for i := range 1000 { // ten records in each of a hundred keys
				recs = append(recs, storage.Record{ID: fmt.Sprint("r", i), Key: key(i % 100)})
			}
			enqueue(t, b, b.queue, recs...)
			b.settle(storage.Ack, b.take(storage.Claim{Limit: 1}).Records...)
			var got []int
			var c storage.Claimed
			got = append(got, b.inner("enqueue 1", func() { b.fill(1, storage.Record{ID: "one", Key: key(1)}) }),
				b.inner("claim 1", func() { c = b.take(storage.Claim{Limit: 1}) }),
				b.inner("ack 1", func() { b.settle(storage.Ack, c.Records...) }),
				b.inner("enqueue 100", func() { b.fill(100, storage.Record{ID: "many", Key: key(1)}) }),
				b.inner("claim a run of 100", func() {
					named := storage.Claim{Limit: 100, Group: true}
					if kind.keys != "" {
						named.Keys = []string{key(1)}
					}
					c = b.take(named)
				}))
			assert.Equal(t, len(c.Records), 100)
			got = append(got, b.inner("ack 100", func() { b.settle(storage.Ack, c.Records...) }))
			for i, n := range got {
				assert.True(t, n <= kind.want[i], got, "more than", kind.want)
			}
		})
	}
}
