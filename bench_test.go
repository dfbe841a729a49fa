// SPDX-License-Identifier: Apache-2.0

package bide_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/memstore"
	"github.com/bidemq/bide/storage"
)

var benchBody = make([]byte, 256)

func BenchmarkEnqueueAlone(b *testing.B) {
	client := bide.NewClient(memstore.New(memstore.Options{}), bide.ClientConfig{})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := client.Enqueue(b.Context(), "bench", bide.Message{Body: benchBody}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEnqueueMany(b *testing.B) {
	client := bide.NewClient(memstore.New(memstore.Options{}), bide.ClientConfig{})
	ms := make([]bide.Message, 100)
	for i := range ms {
		ms[i].Body = benchBody
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := client.EnqueueMany(b.Context(), "bench", ms); err != nil {
			b.Fatal(err)
		}
	}
}

// far is an engine whose calls take a while, with as many at once as anybody likes.
type far struct {
	storage.Engine
	calls *atomic.Int64
	away  time.Duration
}

func (f far) Enqueue(ctx context.Context, now time.Time, queue string, recs []storage.Record) ([]storage.EnqueueResult, error) {
	f.calls.Add(1)
	<-time.After(f.away)
	return f.Engine.Enqueue(ctx, now, queue, recs)
}

func BenchmarkEnqueueConcurrent(b *testing.B) {
	for _, away := range []time.Duration{0, 300 * time.Microsecond} {
		for _, flights := range []int{1, 2, 4} {
			b.Run(fmt.Sprintf("away=%s/flights=%d", away, flights), func(b *testing.B) {
				var engine storage.Engine = memstore.New(memstore.Options{})
				var calls atomic.Int64
				if away > 0 {
					engine = far{engine, &calls, away}
				}
				client := bide.NewClient(engine, bide.ClientConfig{Flights: flights})
				b.ReportAllocs()
				b.SetParallelism(64)
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						if _, err := client.Enqueue(b.Context(), "bench", bide.Message{Body: benchBody}); err != nil {
							b.Error(err)
						}
					}
				})
				if calls.Load() > 0 {
					b.ReportMetric(float64(b.N)/float64(calls.Load()), "messages/call")
				}
			})
		}
	}
}

func BenchmarkConsume(b *testing.B) {
	for _, concurrency := range []int{1, 64} {
		b.Run(fmt.Sprintf("concurrency=%d", concurrency), func(b *testing.B) {
			client := bide.NewClient(memstore.New(memstore.Options{}), bide.ClientConfig{})
			_, err := client.EnqueueMany(b.Context(), "bench", make([]bide.Message, b.N))
			assert.NoError(b, err)
			ctx, cancel := context.WithCancel(b.Context())
			defer cancel()
			consumer := bide.NewConsumer(client, bide.ConsumerConfig{Concurrency: concurrency})
			var done atomic.Int64
			consumer.Handle("bench", func(context.Context, *bide.Delivery[[]byte]) error {
				if done.Add(1) == int64(b.N) {
					cancel()
				}
				return nil
			})
			b.ReportAllocs()
			b.ResetTimer()
			assert.NoError(b, consumer.Run(ctx))
		})
	}
}
