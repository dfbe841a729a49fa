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

type order struct {
	Number string
	Cents  int
}

var orders = bide.NewQueue[order]("orders")

// bubble runs a test on fake time with an engine and a client of its own.
func bubble(t *testing.T, test func(t *testing.T, engine storage.Engine, client *bide.Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		engine := memstore.New(memstore.Options{})
		test(t, engine, bide.NewClient(engine, bide.ClientConfig{Logger: quiet()}))
	})
}

// start runs a consumer and returns a function that stops it and returns what Run said.
func start(t *testing.T, c *bide.Consumer) (stop func() error) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	return func() error {
		cancel()
		return <-done
	}
}

func TestDelayedMessageIsHandledWhenDue(t *testing.T) {
	bubble(t, func(t *testing.T, engine storage.Engine, client *bide.Client) {
		begun := time.Now()
		res, err := orders.Enqueue(t.Context(), client, order{"A-1", 100}, bide.In(48*time.Hour), bide.ID("A-1"))
		assert.NoError(t, err)
		assert.Equal(t, res.Outcome, storage.Stored)
		assert.Equal(t, res.Due, begun.Add(48*time.Hour))

		var got []bide.Delivery[order]
		consumer := bide.NewConsumer(client, bide.ConsumerConfig{})
		orders.Handle(consumer, func(ctx context.Context, d *bide.Delivery[order]) error {
			assert.Equal(t, time.Since(begun), 48*time.Hour)
			got = append(got, *d)
			return nil
		})
		stop := start(t, consumer)
		time.Sleep(49 * time.Hour)
		assert.NoError(t, stop())
		assert.Equal(t, len(got), 1)
		assert.Equal(t, got[0].Body, order{"A-1", 100})
		assert.Equal(t, got[0].Attempt, 1)
		assert.Equal(t, got[0].Lag, 0)
		s, err := client.Stats(t.Context(), "orders")
		assert.NoError(t, err)
		assert.Equal(t, s.Total.Acked, 1)
		assert.Equal(t, s.Total.EmptyClaims, 1)
	})
}
