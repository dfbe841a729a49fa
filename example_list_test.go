// SPDX-License-Identifier: Apache-2.0

package bide_test

import (
	"context"
	"fmt"
	"time"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/memstore"
	"github.com/bidemq/bide/storage"
)

// What waits is found by due time, from either end, and removed by range or by rank.
func ExampleClient_Messages() {
	ctx := context.Background()
	client := bide.NewClient(memstore.New(memstore.Options{}), bide.ClientConfig{})
	for hours := range 6 {
		id := fmt.Sprintf("in %d h", hours)
		if _, err := OrderTimeout.Enqueue(ctx, client, Order{}, bide.ID(id), bide.In(time.Duration(hours)*time.Hour)); err != nil {
			fmt.Println(err)
		}
	}
	queue, waiting := OrderTimeout.Name(), storage.Filter{State: bide.Waiting}
	soon := storage.Filter{State: bide.Waiting, To: time.Now().Add(90 * time.Minute), Desc: true}
	for r, err := range client.Messages(ctx, queue, soon) {
		fmt.Println(r.ID, err)
	}
	purged, err := client.PurgeRanks(ctx, queue, waiting, 1, 3)
	fmt.Println(purged.Count, "purged", err)
	last, err := client.Last(ctx, queue, waiting, 1)
	fmt.Println(last[0].ID, err)
	fmt.Println(client.Count(ctx, queue, waiting))
	// Output:
	// in 1 h <nil>
	// in 0 h <nil>
	// 3 purged <nil>
	// in 5 h <nil>
	// 3 <nil>
}
