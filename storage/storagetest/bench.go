// SPDX-License-Identifier: Apache-2.0

package storagetest

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/storage"
)

// Bench measures an engine: one number for each of enqueueing, claiming with acknowledging, and
// both, alone and in batches of 100, with bodies of 256 bytes.
func Bench(b *testing.B, open func(b *testing.B) storage.Engine) {
	engine := open(b)
	for _, size := range []int{1, 100} {
		b.Run(fmt.Sprintf("Enqueue/batch=%d", size), func(b *testing.B) {
			f := &bencher{engine: engine, queue: NewQueueName()}
			b.ReportAllocs()
			for b.Loop() {
				f.enqueue(b, size)
			}
			f.report(b, size)
		})
		b.Run(fmt.Sprintf("ClaimAck/batch=%d", size), func(b *testing.B) {
			f := &bencher{engine: engine, queue: NewQueueName()}
			b.ReportAllocs()
			for b.Loop() {
				if f.waiting < size {
					b.StopTimer()
					for range 10_000 / 100 {
						f.enqueue(b, 100)
					}
					b.StartTimer()
				}
				f.claimAck(b, size)
			}
			f.report(b, size)
		})
		b.Run(fmt.Sprintf("EnqueueClaimAck/batch=%d", size), func(b *testing.B) {
			f := &bencher{engine: engine, queue: NewQueueName()}
			b.ReportAllocs()
			for b.Loop() {
				f.enqueue(b, size)
				f.claimAck(b, size)
			}
			f.report(b, size)
		})
	}
	for _, producers := range []int{16, 512} {
		b.Run(fmt.Sprintf("Enqueue/producers=%d", producers), func(b *testing.B) {
			queue := NewQueueName()
			var made atomic.Int64
			b.ReportAllocs()
			b.SetParallelism(max(1, producers/runtime.GOMAXPROCS(0)))
			b.RunParallel(func(pb *testing.PB) {
				body := make([]byte, 256)
				for pb.Next() {
					id := fmt.Sprintf("%026d", made.Add(1))
					_, err := engine.Enqueue(b.Context(), time.Time{}, queue, []storage.Record{{ID: id, Body: body}})
					if err != nil {
						b.Error(err)
						return
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
		})
	}
}

// bencher counts what it has put into a queue.
type bencher struct {
	engine  storage.Engine
	queue   string
	made    int
	waiting int
}

func (f *bencher) enqueue(b *testing.B, n int) {
	recs := make([]storage.Record, n)
	for i := range recs {
		f.made++
		recs[i] = storage.Record{ID: fmt.Sprintf("%026d", f.made), Body: make([]byte, 256)}
	}
	_, err := f.engine.Enqueue(b.Context(), time.Time{}, f.queue, recs)
	assert.NoError(b, err)
	f.waiting += n
}

func (f *bencher) claimAck(b *testing.B, n int) {
	c, err := f.engine.Claim(b.Context(), time.Time{}, storage.Claim{Queue: f.queue, Limit: n, Lease: time.Minute})
	assert.NoError(b, err)
	ss := make([]storage.Settlement, len(c.Records))
	for i, r := range c.Records {
		ss[i] = storage.Settlement{Receipt: r.Receipt(f.queue), Verdict: storage.Ack}
	}
	lost, err := f.engine.Settle(b.Context(), time.Time{}, ss)
	assert.NoError(b, err)
	assert.Equal(b, len(c.Records)-len(lost), n)
	f.waiting -= n
}

func (f *bencher) report(b *testing.B, size int) {
	b.ReportMetric(float64(b.N*size)/b.Elapsed().Seconds(), "msg/s")
}
