// SPDX-License-Identifier: Apache-2.0

package bide_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/storage"
)

// R11: what of a batch is not to begin keeps its lease until all of it is settled. In an ordered
// queue the end of that lease would take the others along while their handler runs.
func TestUnfitOfABatchKeepsItsLease(t *testing.T) {
	bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) {
		_, err := client.Configure(t.Context(), "events", storage.ConfigEdit{Ordered: new(true)})
		assert.NoError(t, err)
		_, err = events.Enqueue(t.Context(), client, 0, bide.ID("stale"), bide.Key("k"), bide.ExpireIn(time.Second))
		assert.NoError(t, err)
		putEvents(t, client, "k", 1, 2)
		var got notes
		consumer := bide.NewConsumer(client, bide.ConsumerConfig{Logger: quiet(), Lease: 10 * time.Second, Hooks: bide.Hooks{
			OnClaim: func(_ string, messages int, _ time.Duration, _ error) {
				if messages > 0 {
					pass(2 * time.Second) // the process stands still
				}
			},
			OnLeaseLost: func(d *bide.Delivery[[]byte]) { t.Errorf("the lease of %s was lost", d.ID) },
		}})
		events.HandleBatch(consumer, func(ctx context.Context, key string, ds []*bide.Delivery[int]) error {
			pass(time.Minute) // six leases long
			got.add("%s %v", show(key, ds), ctx.Err())
			return nil
		}, bide.BatchConfig{})
		stop := start(t, consumer)
		pass(time.Hour)
		assert.NoError(t, stop())
		assert.Equal(t, got.all(), []string{"k: k1 k2 <nil>"})
		assert.Equal(t, eventsTotal(t, client), storage.Counters{Enqueued: 3, Claimed: 3, Acked: 2, Expired: 1})
	})
}

// R11: one key of a mixed batch takes no other along, so a lease that another one has lost is told.
func TestLostInAMixedBatchIsTold(t *testing.T) {
	bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) {
		_, err := client.Configure(t.Context(), "events", storage.ConfigEdit{Ordered: new(true)})
		assert.NoError(t, err)
		putEvents(t, client, "a", 0, 1)
		putEvents(t, client, "b", 0, 1)
		ends := make(chan error, 2)
		consumer := bide.NewConsumer(client, bide.ConsumerConfig{Logger: quiet(), Hooks: bide.Hooks{
			OnDone: func(_ *bide.Delivery[[]byte], done bide.Done) { ends <- done.Settle },
		}})
		events.HandleBatch(consumer, func(ctx context.Context, _ string, ds []*bide.Delivery[int]) error {
			if len(ds) == 2 {
				assert.NoError(t, client.Cancel(ctx, "events", "b0", bide.Running))
			}
			return bide.RetryIn(24*time.Hour, errors.New("not yet"))
		}, bide.BatchConfig{Mixed: true})
		stop := start(t, consumer)
		pass(time.Hour)
		assert.NoError(t, stop())
		assert.NoError(t, <-ends)
		assert.ErrorIs(t, <-ends, bide.ErrLeaseLost)
	})
}
