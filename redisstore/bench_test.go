// SPDX-License-Identifier: Apache-2.0

package redisstore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/internal/redistest"
	"github.com/bidemq/bide/storage"
	"github.com/bidemq/bide/storage/storagetest"
)

func BenchmarkEngine(b *testing.B) {
	url := redistest.Start(b).URL()
	storagetest.Bench(b, func(b *testing.B) storage.Engine { return open(b, url) })
}

// BenchmarkKeys measures a queue with few keys, and one with a million, a record waiting in each.
func BenchmarkKeys(b *testing.B) {
	for _, keys := range []int{1_000, 1_000_000} {
		server := redistest.Start(b)
		f := &keyed{store: open(b, server.URL()), queue: storagetest.NewQueueName()}
		for from := 0; from < keys; from += storage.MaxBatch {
			f.enqueue(b, storage.MaxBatch, func(i int) string { return fmt.Sprint("key", from+i) })
		}
		next := func(int) string {
			f.turn = (f.turn + 7919) % keys
			return fmt.Sprint("key", f.turn)
		}
		b.Run(fmt.Sprintf("Enqueue/keys=%d", keys), func(b *testing.B) {
			for b.Loop() {
				f.enqueue(b, 1, next)
			}
		})
		b.Run(fmt.Sprintf("ClaimAck/keys=%d", keys), func(b *testing.B) {
			for b.Loop() {
				f.claimAck(b, storage.Claim{Limit: 1}, 1)
				b.StopTimer()
				f.enqueue(b, 1, next)
				b.StartTimer()
			}
		})
		f.enqueue(b, 500, func(int) string { return "hot" })
		b.Run(fmt.Sprintf("ClaimAckGroup128/keys=%d", keys), func(b *testing.B) {
			for b.Loop() {
				f.claimAck(b, storage.Claim{Limit: 128, Group: true, Keys: []string{"hot"}}, 128)
				b.StopTimer()
				f.enqueue(b, 128, func(int) string { return "hot" })
				b.StartTimer()
			}
		})
	}
}

// keyed is a queue with many keys.
type keyed struct {
	store storage.Engine
	queue string
	made  int
	turn  int
}

func (f *keyed) enqueue(b *testing.B, n int, key func(i int) string) {
	recs := make([]storage.Record, n)
	for i := range recs {
		f.made++
		recs[i] = storage.Record{ID: fmt.Sprintf("%026d", f.made), Key: key(i), Body: make([]byte, 64)}
	}
	_, err := f.store.Enqueue(b.Context(), time.Time{}, f.queue, recs)
	assert.NoError(b, err)
}

func (f *keyed) claimAck(b *testing.B, c storage.Claim, n int) {
	c.Queue, c.Lease = f.queue, time.Minute
	claimed, err := f.store.Claim(b.Context(), time.Time{}, c)
	assert.NoError(b, err)
	assert.Equal(b, len(claimed.Records), n)
	ss := make([]storage.Settlement, n)
	for i, r := range claimed.Records {
		ss[i] = storage.Settlement{Receipt: r.Receipt(f.queue), Verdict: storage.Ack}
	}
	_, err = f.store.Settle(b.Context(), time.Time{}, ss)
	assert.NoError(b, err)
}
