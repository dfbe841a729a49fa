// SPDX-License-Identifier: Apache-2.0

package memstore_test

import (
	"context"
	"fmt"
	"time"

	"github.com/bidemq/bide/memstore"
	"github.com/bidemq/bide/storage"
)

// Explicit instants play an hour without waiting for it.
func ExampleNew() {
	engine := memstore.New(memstore.Options{})
	ctx, now := context.Background(), time.Date(2026, 1, 31, 9, 0, 0, 0, time.UTC)
	if _, err := engine.Enqueue(ctx, now, "mail", []storage.Record{{ID: "a", Delay: time.Hour}}); err != nil {
		fmt.Println(err)
		return
	}
	for _, at := range []time.Time{now, now.Add(time.Hour)} {
		c, err := engine.Claim(ctx, at, storage.Claim{Queue: "mail", Limit: 10, Lease: time.Minute})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(at.Format(time.TimeOnly), len(c.Records), "claimed, next in", c.Next)
	}
	// Output:
	// 09:00:00 0 claimed, next in 1h0m0s
	// 10:00:00 1 claimed, next in 1m0s
}
