// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/internal/redisconn"
	"github.com/bidemq/bide/internal/redistest"
	"github.com/bidemq/bide/storage"
	"github.com/bidemq/bide/storage/storagetest"
)

// spreadQueue returns the name of a queue with so many shards.
func spreadQueue(t *testing.T, s *Store, n int, e storage.ConfigEdit) string {
	t.Helper()
	queue := storagetest.NewQueueName()
	e.Shards = &n
	c, err := s.Configure(t.Context(), queue, e)
	assert.NoError(t, err)
	assert.Equal(t, c.Shards, n)
	return queue
}

func put(t *testing.T, s *Store, queue string, recs ...storage.Record) []storage.EnqueueResult {
	t.Helper()
	results, err := s.Enqueue(t.Context(), time.Time{}, queue, recs)
	assert.NoError(t, err)
	for _, r := range results {
		assert.NoError(t, r.Err)
	}
	return results
}

func take(t *testing.T, s *Store, queue string, limit int) []storage.Record {
	t.Helper()
	c, err := s.Claim(t.Context(), time.Time{}, storage.Claim{Queue: queue, Limit: limit, Lease: time.Minute})
	assert.NoError(t, err)
	return c.Records
}

// R8: who waits for a spread queue is woken by a message in any shard, also in one that came after he began to
// wait: by its notice, since he would not look by himself for a long time. How soon is measured by TestWake of
// internal/lag.
func TestWakesForEveryShard(t *testing.T) {
	t.Parallel()
	url := redistest.Shared(t).URL()
	producer, consumer := openQuiet(t, url), openQuiet(t, url)
	queue := spreadQueue(t, producer, 4, storage.ConfigEdit{})
	wakes := func(from int) {
		met := map[int]bool{}
		for i := from; len(met) < len(producer.layoutOf(queue).shards); i++ {
			_, err := consumer.Wait(t.Context(), []storage.Scope{{Queue: queue}}, 0)
			assert.NoError(t, err)
			assert.Equal(t, len(take(t, consumer, queue, 10)), 0)
			woken := make(chan int)
			go func() {
				for turns := 1; ; turns++ {
					ready, err := consumer.Wait(t.Context(), []storage.Scope{{Queue: queue}}, storage.Forever)
					if err != nil {
						return
					}
					c, err := consumer.Claim(t.Context(), time.Time{}, storage.Claim{Queue: queue, Limit: 10, Lease: time.Minute})
					if err == nil && len(ready) == 1 && len(c.Records) == 1 {
						woken <- turns
						return
					}
				}
			}()
			redistest.Until(t, "the process waits", func() bool {
				n, err := producer.client.Do(t.Context(), producer.client.B().Zcard().Key(producer.keysOf(queue)[8]).Build()).AsInt64()
				return err == nil && n > 0
			})
			assert.True(t, looksIn(consumer, queue) > 30*time.Second) // leases of a minute end next
			r := put(t, producer, queue, storage.Record{ID: strconv.Itoa(i)})
			select {
			case turns := <-woken:
				assert.True(t, turns <= 2, turns, "claims") // one for nothing at most
			case <-time.After(20 * time.Second):
				t.Fatal("slept through", i)
			}
			_, shard := producer.layoutOf(queue).localSeq(r[0].Seq)
			met[shard] = true
		}
	}
	wakes(0)
	_, err := producer.Configure(t.Context(), queue, storage.ConfigEdit{Shards: new(8)})
	assert.NoError(t, err)
	wakes(1000)
}

// looksIn is how long a process waits until it looks into a shard without having been told.
func looksIn(s *Store, queue string) time.Duration {
	s.watches.mu.Lock()
	defer s.watches.mu.Unlock()
	soonest := storage.Forever
	for _, at := range s.layoutOf(queue).shards {
		if q := s.watches.queues[at.name]; q != nil && !q.comeback.IsZero() {
			soonest = min(soonest, time.Until(q.comeback))
		}
	}
	return soonest
}

// Ten idle queues of four shards cost less than eight commands a second, inside of scripts included.
func TestIdleShardsCostLittle(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := openQuiet(t, server.URL())
	var scopes []storage.Scope
	for range 10 {
		scopes = append(scopes, storage.Scope{Queue: spreadQueue(t, s, 4, storage.ConfigEdit{})})
	}
	claimAll := func() {
		for _, scope := range scopes {
			take(t, s, scope.Queue, 10)
		}
	}
	_, err := s.Wait(t.Context(), scopes, 0)
	assert.NoError(t, err)
	claimAll()
	commands := func() int {
		n, err := strconv.Atoi(redisconn.ParseInfo(server.Do(t, "INFO", "stats"))["total_commands_processed"])
		assert.NoError(t, err)
		return n
	}
	before := commands()
	claimAll()
	once := commands() - before
	before = commands()
	ready, err := s.Wait(t.Context(), scopes, 3*time.Second)
	assert.NoError(t, err)
	assert.Equal(t, len(ready), 0)
	waiting := float64(commands()-before) / 3
	perSecond := waiting + float64(once)/pollEvery.Seconds()
	t.Logf("%d commands to claim from all, %.1f commands a second while waiting: %.1f a second", once, waiting, perSecond)
	assert.True(t, perSecond < 8, perSecond)
}

// R12: bounds of the whole queue are kept with a tolerance, those of a key exactly.
func TestBoundsOfShards(t *testing.T) {
	t.Parallel()
	s := openQuiet(t, redistest.Shared(t).URL())
	const shards, most = 4, 100
	queue := spreadQueue(t, s, shards, storage.ConfigEdit{MaxLen: new(most), MaxPerKey: new(3)})
	stored, perKey := 0, map[string]int{}
	for i := range 1000 {
		key := fmt.Sprint("k", i%60)
		results, err := s.Enqueue(t.Context(), time.Time{}, queue, []storage.Record{{ID: strconv.Itoa(i), Key: key}})
		assert.NoError(t, err)
		if results[0].Err != nil {
			assert.ErrorIs(t, results[0].Err, storage.ErrFull)
			continue
		}
		stored++
		perKey[key]++
	}
	assert.True(t, stored <= most+shards-1 && stored >= most-most/4, stored)
	for key, n := range perKey {
		assert.True(t, n <= 3, key, n)
	}
	assert.Equal(t, strings.Count(s.layoutOf(queue).text, ","), 0)
}
