// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/internal/redistest"
	"github.com/bidemq/bide/storage"
	"github.com/bidemq/bide/storage/storagetest"
)

// drain acks all that a process can claim from a queue until so many messages were acked in all.
func drain(t *testing.T, s *Store, queue string, acked map[string]bool, until int) {
	t.Helper()
	redistest.Until(t, "everything is acked", func() bool {
		var ss []storage.Settlement
		var ids []string
		for _, r := range take(t, s, queue, 100) {
			ids, ss = append(ids, r.ID), append(ss, storage.Settlement{Receipt: r.Receipt(queue), Verdict: storage.Ack})
		}
		lost, err := s.Settle(t.Context(), time.Time{}, ss)
		assert.NoError(t, err)
		assert.Equal(t, len(lost), 0)
		for _, id := range ids {
			assert.True(t, !acked[id], "acked twice:", id)
			acked[id] = true
		}
		return len(acked) >= until
	})
}

// What the first shard knows is lost while the queue is in use. Whoever knows the layout gives it back with the next
// call; if nobody does, Repair finds it in the other shards. Nothing is lost, and nothing stays. R14 R20
func TestLostMetaOfTheFirstShard(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	for name, known := range map[string]bool{"known": true, "forgotten": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openQuiet(t, server.URL())
			queue := spreadQueue(t, s, 5, storage.ConfigEdit{MaxDeliveries: new(7)})
			const each = 200
			acked := map[string]bool{}
			put := func(s *Store, from int) {
				for i := range each {
					put(t, s, queue, storage.Record{ID: strconv.Itoa(from + i), Key: []string{"", "k" + strconv.Itoa(i%40)}[i%2]})
				}
			}
			put(s, 0)
			drain(t, s, queue, acked, each/2)
			server.Do(t, "DEL", s.keysOf(queue)[0])
			if !known {
				s = openQuiet(t, server.URL())
			}
			put(s, each)
			claimed := take(t, s, queue, 100)
			ss := make([]storage.Settlement, len(claimed))
			for i, r := range claimed {
				acked[r.ID] = true
				ss[i] = storage.Settlement{Receipt: r.Receipt(queue), Verdict: storage.Ack}
			}
			lost, err := s.Settle(t.Context(), time.Time{}, ss)
			assert.NoError(t, err)
			assert.Equal(t, len(lost), 0)

			if !known {
				lost := storage.Fix{What: "queue without its layout", Count: 1}
				assert.True(t, slices.Contains(storagetest.RepairAll(t, s, time.Time{}, queue, 100, true), lost))
				assert.Equal(t, s.layoutOf(queue).counts, []int{1}) // a dry run changes nothing
			}
			repairAll(t, s, queue)
			assert.Equal(t, s.layoutOf(queue).counts, []int{5})
			assert.Equal(t, storagetest.RepairAll(t, s, time.Time{}, queue, 100, true), nil)
			fresh := openQuiet(t, server.URL())
			put(fresh, 2*each)
			drain(t, fresh, queue, acked, 3*each)
			st, err := fresh.Stats(t.Context(), time.Time{}, queue)
			assert.NoError(t, err)
			assert.Equal(t, st.Delayed+st.Ready+st.Leased+st.Dead, 0)
			assert.Equal(t, []int{st.Config.Shards, st.Config.MaxDeliveries}, []int{5, 7})
		})
	}
}

// A failover brings back an older layout of one shard, the first or another. The next call to a shard that has the
// newer one mends that, without Repair, also by a process that knows neither. R20
func TestOlderLayoutComesBack(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	for i := range 4 {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			s := openQuiet(t, server.URL())
			queue := spreadQueue(t, s, 4, storage.ConfigEdit{})
			older := s.layoutOf(queue).text
			acked := map[string]bool{}
			for id := range 100 {
				put(t, s, queue, storage.Record{ID: strconv.Itoa(id)})
			}
			_, err := s.Configure(t.Context(), queue, storage.ConfigEdit{Shards: new(9)})
			assert.NoError(t, err)
			for id := range 100 {
				put(t, s, queue, storage.Record{ID: strconv.Itoa(100 + id)})
			}
			newer := s.layoutOf(queue).text
			server.Do(t, "HSET", s.keysOf(shardName(queue, i))[0], "v", older)
			fresh := openQuiet(t, server.URL())
			drain(t, fresh, queue, acked, 200)
			assert.Equal(t, fresh.layoutOf(queue).text, newer)
			assert.Equal(t, server.Do(t, "HGET", s.keysOf(queue)[0], "v"), newer)
			again := put(t, s, queue, storage.Record{ID: "last"}, storage.Record{ID: "last"})
			assert.Equal(t, again[1].Outcome, storage.Duplicate)
			drain(t, s, queue, acked, 201)
		})
	}
}
