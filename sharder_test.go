// SPDX-License-Identifier: Apache-2.0

package bide_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/memstore"
	"github.com/bidemq/bide/storage"
)

// halved is an engine of two shards, of which the second, that of ids with a "b", does not answer.
type halved struct{ storage.Engine }

func (halved) Shard(r storage.Receipt) int { return int(r.ID[0] - 'a') }

func (e halved) Settle(ctx context.Context, now time.Time, ss []storage.Settlement) ([]storage.Receipt, error) {
	for _, s := range ss {
		if e.Shard(s.Receipt) == 1 {
			<-ctx.Done()
			return nil, ctx.Err()
		}
	}
	return e.Engine.Settle(ctx, now, ss)
}

func (e halved) Extend(ctx context.Context, now time.Time, lease time.Duration, rs []storage.Receipt) ([]storage.Receipt, error) {
	for _, r := range rs {
		if e.Shard(r) == 1 {
			<-ctx.Done()
			return nil, ctx.Err()
		}
	}
	return e.Engine.Extend(ctx, now, lease, rs)
}

// A shard that does not answer holds up neither the settlements nor the leases of another.
func TestShardsFailApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := bide.NewClient(halved{memstore.New(memstore.Options{})}, bide.ClientConfig{Logger: slog.New(slog.DiscardHandler)})
		for i := range 40 {
			put(t, client, fmt.Sprint([]string{"a", "a", "a", "b"}[i%4], i))
		}
		put(t, client, "along")
		put(t, client, "blong")
		var mu sync.Mutex
		var stopped []string
		consumer := bide.NewConsumer(client, bide.ConsumerConfig{
			Concurrency: 8, Lease: 30 * time.Second, Logger: slog.New(slog.DiscardHandler),
			Hooks: bide.Hooks{OnLeaseLost: func(d *bide.Delivery[[]byte]) {
				mu.Lock()
				defer mu.Unlock()
				stopped = append(stopped, d.ID)
			}},
		})
		consumer.Handle("orders", func(ctx context.Context, d *bide.Delivery[[]byte]) error {
			took := time.Millisecond
			if d.ID[1:] == "long" {
				took = 40 * time.Second
			}
			select {
			case <-time.After(took):
			case <-ctx.Done():
			}
			return nil
		})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- consumer.Run(ctx) }()
		<-time.After(time.Second)
		synctest.Wait()
		assert.Equal(t, total(t, client).Acked, 30)
		<-time.After(44 * time.Second)
		synctest.Wait()
		assert.Equal(t, total(t, client).Acked, 31)
		mu.Lock()
		assert.Equal(t, stopped[:1], []string{"blong"})
		mu.Unlock()
		stop()
		assert.True(t, <-ended != nil, "the second shard answered")
		assert.NoError(t, client.Close(t.Context()))
	})
}
