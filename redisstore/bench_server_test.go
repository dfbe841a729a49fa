// SPDX-License-Identifier: Apache-2.0

package redisstore_test

import (
	"fmt"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/internal/redistest"
	"github.com/bidemq/bide/storage"
	"github.com/bidemq/bide/storage/storagetest"
)

// BenchmarkServer measures what the three hot calls cost the server, in microseconds of its CPU a
// record: that is what bounds a queue on one Redis. As many are leased at a time as consumers
// have that keep up.
func BenchmarkServer(b *testing.B) {
	for _, n := range []int{1, 2, 4, 8, 16, 64, 256, 1000} {
		b.Run(fmt.Sprint("batch=", n), func(b *testing.B) {
			server := redistest.Start(b)
			store, queue := open(b, server.URL()), storagetest.NewQueueName()
			records := make([]storage.Record, n)
			settled := make([]storage.Settlement, n)
			made := 0
			var took [3]float64
			measure := func(which, rounds int, do func()) {
				before := serverCPU(b, server)
				for range rounds {
					do()
				}
				took[which] += serverCPU(b, server) - before
			}
			rounds := max(1, min(16, 1000/n)) // claims under way
			laps := max(1, 20000/n/rounds)
			var claims []storage.Claimed
			for b.Loop() {
				measure(0, laps*rounds, func() {
					for i := range records {
						made++
						records[i] = storage.Record{ID: fmt.Sprintf("%026d", made), Body: make([]byte, 256)}
					}
					_, err := store.Enqueue(b.Context(), time.Time{}, queue, records)
					assert.NoError(b, err)
				})
				for range laps {
					claims = claims[:0]
					measure(1, rounds, func() {
						c, err := store.Claim(b.Context(), time.Time{}, storage.Claim{Queue: queue, Limit: n, Lease: time.Minute, By: "host-1234-abcd"})
						assert.NoError(b, err)
						assert.Equal(b, len(c.Records), n)
						claims = append(claims, c)
					})
					next := 0
					measure(2, rounds, func() {
						for i, r := range claims[next].Records {
							settled[i] = storage.Settlement{Receipt: r.Receipt(queue), Verdict: storage.Ack}
						}
						next++
						lost, err := store.Settle(b.Context(), time.Time{}, settled)
						assert.NoError(b, err)
						assert.Equal(b, len(lost), 0)
					})
				}
			}
			for i, name := range []string{"enqueue", "claim", "ack"} {
				b.ReportMetric(took[i]/float64(made), name+"-µs/rec")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkServerCancel measures what canceling by id costs the server, as BenchmarkServer does.
func BenchmarkServerCancel(b *testing.B) {
	server := redistest.Start(b)
	store, queue := open(b, server.URL()), storagetest.NewQueueName()
	records, made, took := make([]storage.Record, 1000), 0, 0.0
	for b.Loop() {
		for i := range records {
			made++
			records[i] = storage.Record{ID: fmt.Sprintf("%026d", made), Delay: time.Hour, Body: make([]byte, 256)}
		}
		_, err := store.Enqueue(b.Context(), time.Time{}, queue, records)
		assert.NoError(b, err)
		before := serverCPU(b, server)
		for i := range records {
			assert.NoError(b, store.Cancel(b.Context(), time.Time{}, queue, records[i].ID, false))
		}
		took += serverCPU(b, server) - before
	}
	b.ReportMetric(took/float64(made), "cancel-µs/rec")
	b.ReportMetric(0, "ns/op")
}

var cpuLine = regexp.MustCompile(`used_cpu_(?:user|sys)_main_thread:([0-9.]+)`)

// serverCPU is the CPU time that the server has used, in microseconds.
func serverCPU(b *testing.B, s *redistest.Server) float64 {
	b.Helper()
	total := 0.0
	for _, m := range cpuLine.FindAllStringSubmatch(s.Do(b, "INFO", "cpu"), -1) {
		seconds, err := strconv.ParseFloat(m[1], 64)
		assert.NoError(b, err)
		total += seconds * 1e6
	}
	return total
}
