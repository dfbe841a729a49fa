// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"time"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/storage"
)

// UntilEmpty waits until nothing waits or runs in a queue, or for the end of ctx, and returns what
// the queue has counted.
func UntilEmpty(ctx context.Context, client *bide.Client, queue string) (storage.Stats, error) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		st, err := client.Stats(ctx, queue)
		if err != nil || st.Delayed+st.Ready+st.Leased == 0 {
			return st, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return st, ctx.Err()
		}
	}
}
