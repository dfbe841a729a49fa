// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/internal/redistest"
	"github.com/bidemq/bide/storage"
	"github.com/bidemq/bide/storage/storagetest"
)

// populate fills a queue with records in every state, and returns how they look.
func populate(t *testing.T, s *Store, queue string, now time.Time) []storage.Record {
	t.Helper()
	var recs []storage.Record
	for i := range 40 {
		recs = append(recs, storage.Record{
			ID: fmt.Sprint(i), Body: []byte("body"), Priority: i % 10, Delay: time.Duration(i%3) * time.Hour,
			ExpireIn: time.Duration(i%2) * 100 * time.Hour, DedupFor: time.Duration(i%5) * time.Hour,
		})
	}
	_, err := s.Enqueue(t.Context(), now, queue, recs)
	assert.NoError(t, err)
	c, err := s.Claim(t.Context(), now, storage.Claim{Queue: queue, Limit: 12, Lease: 20 * time.Hour, By: "me"})
	assert.NoError(t, err)
	verdicts := []storage.Verdict{storage.Ack, storage.Bury, storage.Retry, storage.Release}
	for i, r := range c.Records[:8] {
		_, err := s.Settle(t.Context(), now, []storage.Settlement{
			{Receipt: r.Receipt(queue), Verdict: verdicts[i%4], Reason: "because"},
		})
		assert.NoError(t, err)
	}
	_, err = s.Enqueue(t.Context(), now, queue, []storage.Record{{ID: c.Records[8].ID, OnLive: storage.Rerun}})
	assert.NoError(t, err)
	populateKeys(t, s, queue, now)
	return everything(t, s, queue, now)
}

// populateKeys adds records with keys in every state, idle keys, done records and untold dead ones.
func populateKeys(t *testing.T, s *Store, queue string, now time.Time) {
	t.Helper()
	_, err := s.Configure(t.Context(), queue, storage.ConfigEdit{
		KeyIdle: new(100 * time.Hour), RetainCount: new(100), TellDead: new(true),
	})
	assert.NoError(t, err)
	var recs []storage.Record
	for i := range 40 {
		recs = append(recs, storage.Record{
			ID: fmt.Sprint("keyed", i), Key: fmt.Sprint("key", i%7), Priority: i % 3, Body: []byte("body"), Delay: time.Duration(i%2) * time.Hour,
		})
	}
	_, err = s.Enqueue(t.Context(), now, queue, recs)
	assert.NoError(t, err)
	c, err := s.Claim(t.Context(), now, storage.Claim{Queue: queue, Limit: 8, Lease: 20 * time.Hour, By: "me", Except: []string{""}})
	assert.NoError(t, err)
	assert.Equal(t, len(c.Records), 8)
	for i, r := range c.Records[:6] {
		_, err := s.Settle(t.Context(), now, []storage.Settlement{
			{Receipt: r.Receipt(queue), Verdict: []storage.Verdict{storage.Ack, storage.Bury, storage.Retry}[i%3], Reason: "because"},
		})
		assert.NoError(t, err)
	}
}

func everything(t *testing.T, s *Store, queue string, now time.Time) []storage.Record {
	t.Helper()
	var all []storage.Record
	for _, state := range []storage.State{storage.Delayed, storage.Ready, storage.Leased, storage.Dead, storage.Done} {
		page, err := s.List(t.Context(), now, queue, storage.Filter{State: state, Limit: storage.MaxBatch})
		assert.NoError(t, err)
		all = append(all, page.Records...)
	}
	return all
}

// R14: whatever but the records is lost, or damaged, comes back from the records.
func TestRepairRebuildsEachStructure(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	now := time.UnixMilli(1_700_000_000_000).UTC()
	for _, structure := range structures {
		if structure == "records" || structure == "waiters" {
			continue
		}
		for _, damage := range []string{"lost", "foreign"} {
			if damage == "foreign" && structure == "meta" {
				continue
			}
			t.Run(structure+" "+damage, func(t *testing.T) {
				t.Parallel()
				s, queue := openQuiet(t, server.URL()), storagetest.NewQueueName()
				want := populate(t, s, queue, now)
				key := s.keys(queue)[slices.Index(structures[:], structure)]
				switch {
				case damage == "lost":
					server.Do(t, "DEL", key)
				case structure == "keys":
					server.Do(t, "HSET", key, "nobody", strings.Repeat("1", 29))
				default:
					server.Do(t, "EVAL", `return redis.call('ZADD', KEYS[1], 9e14, string.rep('\0', 5) .. '\1nobody')`, "1", key)
				}
				dry := storagetest.RepairAll(t, s, now, queue, 7, true)
				mended := storagetest.RepairAll(t, s, now, queue, 7, false)
				if structure != "windows" { // a window is no record: what is lost is lost, a foreign one ends
					assert.True(t, len(dry) > 0 && len(mended) > 0, "found nothing wrong")
				}
				assert.Equal(t, storagetest.RepairAll(t, s, now, queue, 7, true), nil)
				assert.Equal(t, everything(t, s, queue, now), want)
				st, err := s.Stats(t.Context(), now, queue)
				assert.NoError(t, err)
				storagetest.AddsUp(t, st)
			})
		}
	}
}

// R14 R8: entries of processes that do not come any more, and of none, swallow no notice and are
// removed; those of processes that wait stay, and are told though nothing says that somebody waits.
func TestRepairRemovesWaitersThatDoNotCome(t *testing.T) {
	t.Parallel()
	server, queue := redistest.Shared(t), storagetest.NewQueueName()
	s := openQuiet(t, server.URL())
	enqueue := func(id string) {
		_, err := s.Enqueue(t.Context(), time.Time{}, queue, []storage.Record{{ID: id, Delay: time.Hour}})
		assert.NoError(t, err)
	}
	enqueue("a")
	waiters := s.keys(queue)[slices.Index(structures[:], "waiters")]
	now := time.Now().UnixMilli()
	for member, at := range map[string]int64{
		"bide:default:LIVING " + queue:         now + 60_000,
		"*bide:default:LIVING " + queue + " 1": 1<<52 + now + 60_000,
		"bide:default:DEAD " + queue:           now - 120_000,
		"*bide:default:DEAD " + queue + " 7":   1<<52 + now - 120_000,
		"nonsense":                             now + 60_000,
	} {
		server.Do(t, "ZADD", waiters, decimal(at), member)
	}
	dry := storagetest.RepairAll(t, s, time.Time{}, queue, storage.MaxBatch, true)
	assert.True(t, slices.ContainsFunc(dry, func(f storage.Fix) bool { return f.What == "waiter that does not come" && f.Count == 3 }), dry)
	storagetest.RepairAll(t, s, time.Time{}, queue, storage.MaxBatch, false)
	assert.Equal(t, storagetest.RepairAll(t, s, time.Time{}, queue, storage.MaxBatch, true), nil)
	assert.Equal(t, server.Do(t, "ZCARD", waiters), "2")

	server.Do(t, "ZADD", waiters, decimal(now+60_000), "nonsense")
	_, err := s.Enqueue(t.Context(), time.Time{}, queue, []storage.Record{{ID: "b"}})
	assert.NoError(t, err)
}

// R14: what has no record goes, and what is half there becomes whole.
func TestRepairMendsRecords(t *testing.T) {
	t.Parallel()
	server, queue := redistest.Shared(t), storagetest.NewQueueName()
	s := openQuiet(t, server.URL())
	now := time.UnixMilli(1_700_000_000_000).UTC()
	_, err := s.Enqueue(t.Context(), now, queue, []storage.Record{{ID: "a"}, {ID: "b"}, {ID: "c"}})
	assert.NoError(t, err)
	_, err = s.Claim(t.Context(), now, storage.Claim{Queue: queue, Limit: 2, Lease: time.Hour})
	assert.NoError(t, err)
	_, err = s.Enqueue(t.Context(), now, queue, []storage.Record{{ID: "a", OnLive: storage.Rerun}, {ID: "b", OnLive: storage.Rerun}})
	assert.NoError(t, err)
	records := s.keys(queue)[1]
	server.Do(t, "HDEL", records, "a")         // progress and successor stay
	server.Do(t, "HDEL", records, "\x02b")     // the record says that it has one
	server.Do(t, "HSET", records, "\x01z", "") // progress of nobody
	mended := storagetest.RepairAll(t, s, now, queue, storage.MaxBatch, false)
	assert.True(t, len(mended) > 0)
	assert.Equal(t, storagetest.RepairAll(t, s, now, queue, storage.MaxBatch, true), nil)
	a, err := s.Get(t.Context(), now, queue, "a")
	assert.NoError(t, err)
	assert.Equal(t, a.State, storage.Ready)
	b, err := s.Get(t.Context(), now, queue, "b")
	assert.NoError(t, err)
	assert.Equal(t, []any{b.State, b.Successor}, []any{storage.Leased, false})
}

func TestRepairRefusesAForeignCursor(t *testing.T) {
	t.Parallel()
	s := openQuiet(t, redistest.Shared(t).URL())
	_, err := s.Repair(t.Context(), time.Time{}, "q", storage.Repair{After: "nonsense", Limit: 1})
	assert.ErrorIs(t, err, storage.ErrInvalid)
}
