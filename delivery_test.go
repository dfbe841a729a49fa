// SPDX-License-Identifier: Apache-2.0

package bide_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/memstore"
	"github.com/bidemq/bide/storage"
)

// hasty hands out what is due within a second.
type hasty struct{ storage.Engine }

func (e hasty) Claim(ctx context.Context, _ time.Time, c storage.Claim) (storage.Claimed, error) {
	now := time.Now()
	got, err := e.Engine.Claim(ctx, now.Add(time.Second), c)
	got.Now = now
	return got, err
}

func TestEarlyDeliveryShows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := bide.NewClient(hasty{memstore.New(memstore.Options{})}, bide.ClientConfig{})
		res, err := orders.Enqueue(t.Context(), client, order{}, bide.In(900*time.Millisecond))
		assert.NoError(t, err)
		held, err := client.Claim(t.Context(), "orders", bide.ClaimOptions{})
		assert.NoError(t, err)
		assert.Equal(t, held[0].Lag, -900*time.Millisecond)
		assert.Equal(t, held[0].Claimed, time.Now())
		assert.True(t, held[0].Claimed.Before(res.Due))
	})
}

func TestDeliverySaysWhenItWasClaimed(t *testing.T) {
	bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) {
		put(t, client, "a", bide.In(time.Hour))
		pass(time.Hour + time.Minute)
		consumer := bide.NewConsumer(client, bide.ConsumerConfig{})
		handled := make(chan *bide.Delivery[order], 1)
		orders.Handle(consumer, func(_ context.Context, d *bide.Delivery[order]) error {
			handled <- d
			return nil
		})
		stop := start(t, consumer)
		d := <-handled
		assert.Equal(t, d.Claimed, time.Now())
		assert.Equal(t, d.Lag, time.Minute)
		assert.NoError(t, stop())
	})
}
