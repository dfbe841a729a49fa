// SPDX-License-Identifier: Apache-2.0

package pebblestore

import (
	"fmt"
	"testing"
	"time"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/storage"
	"github.com/bidemq/bide/storage/storagetest"
)

func BenchmarkEngine(b *testing.B) {
	storagetest.Bench(b, func(b *testing.B) storage.Engine { return openBench(b, Options{}) })
}

func BenchmarkRelaxed(b *testing.B) {
	storagetest.Bench(b, func(b *testing.B) storage.Engine { return openBench(b, Options{Relaxed: true}) })
}

// BenchmarkDrain claims and acknowledges a queue that was filled before, in batches of 100. One
// operation is the whole of 200,000 records.
func BenchmarkDrain(b *testing.B) {
	for _, relaxed := range []bool{false, true} {
		b.Run(fmt.Sprintf("relaxed=%t", relaxed), func(b *testing.B) {
			const total = 200_000
			for b.Loop() {
				b.StopTimer()
				s := openBench(b, Options{Relaxed: relaxed})
				fill(b, s, total)
				b.StartTimer()
				drain(b, s, total)
			}
			b.ReportMetric(float64(b.N)*total/b.Elapsed().Seconds(), "msg/s")
		})
	}
}

func openBench(b *testing.B, o Options) *Store {
	s, err := Open(b.TempDir(), o)
	assert.NoError(b, err)
	b.Cleanup(func() { assert.NoError(b, s.Close()) })
	return s
}

func fill(tb testing.TB, s *Store, total int) {
	tb.Helper()
	body := make([]byte, 256)
	recs := make([]storage.Record, 500)
	for n := 0; n < total; n += len(recs) {
		for i := range recs {
			recs[i] = storage.Record{ID: fmt.Sprintf("%026d", n+i), Body: body}
		}
		_, err := s.Enqueue(tb.Context(), time.Time{}, "drain", recs)
		assert.NoError(tb, err)
	}
}

func drain(tb testing.TB, s *Store, total int) {
	tb.Helper()
	for n := 0; n < total; {
		got, err := s.Claim(tb.Context(), time.Time{}, storage.Claim{Queue: "drain", Limit: 100, Lease: time.Minute})
		assert.NoError(tb, err)
		ss := make([]storage.Settlement, len(got.Records))
		for i := range got.Records {
			ss[i] = storage.Settlement{Receipt: got.Records[i].Receipt("drain"), Verdict: storage.Ack}
		}
		lost, err := s.Settle(tb.Context(), time.Time{}, ss)
		assert.NoError(tb, err)
		assert.Equal(tb, len(lost), 0)
		n += len(ss)
	}
}

// BenchmarkKeys enqueues one record for each of many keys, and claims one of each, in batches of 100
// with as many keys present all the time. One operation is a hundred records.
func BenchmarkKeys(b *testing.B) {
	for _, keys := range []int{1_000, 1_000_000} {
		s := openBench(b, Options{Relaxed: true})
		fillKeys(b, s, time.Time{}, keys)
		made := keys
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) {
			recs := make([]storage.Record, 100)
			for b.Loop() {
				for i := range recs {
					recs[i] = storage.Record{ID: fmt.Sprint(made), Key: fmt.Sprint("key ", made%(2*keys))}
					made++
				}
				_, err := s.Enqueue(b.Context(), time.Time{}, "q", recs)
				assert.NoError(b, err)
				got, err := s.Claim(b.Context(), time.Time{}, storage.Claim{Queue: "q", Limit: len(recs), Lease: time.Minute})
				assert.NoError(b, err)
				ss := make([]storage.Settlement, len(got.Records))
				for i := range got.Records {
					ss[i] = storage.Settlement{Receipt: got.Records[i].Receipt("q"), Verdict: storage.Ack}
				}
				assert.Equal(b, len(ss), len(recs))
				_, err = s.Settle(b.Context(), time.Time{}, ss)
				assert.NoError(b, err)
			}
			b.ReportMetric(float64(b.N*len(recs))/b.Elapsed().Seconds(), "msg/s")
		})
		assert.True(b, len(s.queues["q"].groups) <= knownGroups)
	}
}
