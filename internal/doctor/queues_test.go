// SPDX-License-Identifier: Apache-2.0

package doctor_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/internal/doctor"
	"github.com/bidemq/bide/internal/redistest"
	"github.com/bidemq/bide/redisstore"
	"github.com/bidemq/bide/storage"
)

// The states of queues, provoked in a real store.
func TestQueuesInRedis(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, good()...)
	engine, err := redisstore.Open(t.Context(), server.URL())
	assert.NoError(t, err)
	t.Cleanup(func() { _ = engine.Close() })
	q := doctor.Queues{Engine: engine, Memory: &doctor.Memory{Client: connect(t, server.URL())}, Limits: patient()}
	put := func(queue string, recs ...storage.Record) {
		results, err := engine.Enqueue(t.Context(), time.Time{}, queue, recs)
		assert.NoError(t, err)
		for _, r := range results {
			assert.NoError(t, r.Err)
		}
	}
	claim := func(queue string, lease time.Duration) []storage.Record {
		got, err := engine.Claim(t.Context(), time.Time{}, storage.Claim{Queue: queue, Limit: 10, Lease: lease})
		assert.NoError(t, err)
		return got.Records
	}
	late := time.Now().Add(-time.Hour)

	put("fine", storage.Record{ID: "a", Delay: time.Hour, Body: make([]byte, 100)})
	found, census, err := q.Look(t.Context())
	assert.NoError(t, err)
	assert.Equal(t, found, nil)
	assert.Equal(t, census.Records, int64(1))
	assert.True(t, census.Bytes > 200 && census.Bytes < 2000, census.Bytes)
	room, used, err := q.Memory.Room(t.Context())
	assert.NoError(t, err)
	assert.Equal(t, room+used, int64(200<<20))

	put("alone", storage.Record{ID: "a", Due: late})
	put("busy", storage.Record{ID: "a", Due: late}, storage.Record{ID: "b", Due: late})
	got, err := engine.Claim(t.Context(), time.Time{}, storage.Claim{Queue: "busy", Limit: 1, Lease: time.Hour})
	assert.NoError(t, err)
	assert.Equal(t, len(got.Records), 1)
	put("paused", storage.Record{ID: "a"})
	_, err = engine.Configure(t.Context(), "paused", storage.ConfigEdit{Paused: new(true)})
	assert.NoError(t, err)
	put("dead", storage.Record{ID: "a"})
	for _, r := range claim("dead", time.Minute) {
		_, err := engine.Settle(t.Context(), time.Time{}, []storage.Settlement{{Receipt: r.Receipt("dead"), Verdict: storage.Bury}})
		assert.NoError(t, err)
	}
	var many []storage.Record
	for i := range 10 {
		many = append(many, storage.Record{ID: string(rune('a' + i))})
	}
	put("lapsed", many...)
	assert.Equal(t, len(claim("lapsed", time.Millisecond)), 10)
	redistest.Until(t, "the leases have ended", func() bool { return lapsed(t.Context(), engine) == 10 })

	q.Limits.Dead = 0
	found, _, err = q.Look(t.Context())
	assert.NoError(t, err)
	checks := map[string]string{}
	for _, f := range found {
		checks[f.Where] = f.Check
	}
	assert.Equal(t, checks, map[string]string{
		"queue alone": "no consumer", "queue busy": "lag", "queue paused": "paused", "queue dead": "dead", "queue lapsed": "leases",
	})

	q.Limits.Key = 1
	found, _, err = q.Look(t.Context())
	assert.NoError(t, err)
	one(t, found, "big key")
}

// All shards of a queue are looked at, those too that it is leaving.
func TestShardsOfAQueue(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, good()...)
	engine, err := redisstore.Open(t.Context(), server.URL())
	assert.NoError(t, err)
	t.Cleanup(func() { _ = engine.Close() })
	const each = 10_000
	recs := make([]storage.Record, 0, 100)
	for i := range cap(recs) {
		recs = append(recs, storage.Record{ID: strconv.Itoa(i), Body: make([]byte, each), Delay: time.Hour})
	}
	for _, shards := range []int{8, 2} {
		_, err = engine.Configure(t.Context(), "spread", storage.ConfigEdit{Shards: &shards})
		assert.NoError(t, err)
		_, err = engine.Enqueue(t.Context(), time.Time{}, "spread", recs)
		assert.NoError(t, err)
		q := doctor.Queues{Engine: engine, Memory: &doctor.Memory{Client: connect(t, server.URL())}, Limits: patient()}
		q.Limits.Key = each
		found, census, err := q.Look(t.Context())
		assert.NoError(t, err)
		assert.True(t, census.Bytes > int64(each*len(recs)), census.Bytes)
		one(t, found, "big key")
	}
}

func lapsed(ctx context.Context, engine storage.Engine) int64 {
	st, err := engine.Stats(ctx, time.Time{}, "lapsed")
	if err != nil {
		return -1
	}
	return st.Total.Lapsed
}
