// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/internal/redistest"
	"github.com/bidemq/bide/storage"
	"github.com/bidemq/bide/storage/storagetest"
)

// repairAll mends a queue to the end, and returns how much was damaged.
func repairAll(t *testing.T, s *Store, queue string) int {
	t.Helper()
	n, after := 0, ""
	for {
		r, err := s.Repair(t.Context(), time.Time{}, queue, storage.Repair{After: after, Limit: 100})
		assert.NoError(t, err)
		for _, f := range r.Fixes {
			n += f.Count
		}
		if after = r.Next; after == "" {
			return n
		}
	}
}

// Dead and done records move to where they belong when the number of shards has changed, with all that is known
// about them; then they can be redriven.
func TestFinishedRecordsMove(t *testing.T) {
	t.Parallel()
	s := openQuiet(t, redistest.Shared(t).URL())
	queue := spreadQueue(t, s, 5, storage.ConfigEdit{RetainCount: new(1000), TellDead: new(true)})
	const each = 30
	for i := range each {
		put(t, s, queue, storage.Record{ID: "dead" + strconv.Itoa(i), MaxAttempts: 1}, storage.Record{ID: "done" + strconv.Itoa(i), Key: "k" + strconv.Itoa(i)})
	}
	for left := 2 * each; left > 0; {
		var ss []storage.Settlement
		for _, r := range take(t, s, queue, 100) {
			verdict := storage.Ack
			if r.Key == "" {
				verdict = storage.Retry
			}
			ss = append(ss, storage.Settlement{Receipt: r.Receipt(queue), Verdict: verdict, Reason: ""})
			left--
		}
		lost, err := s.Settle(t.Context(), time.Time{}, ss)
		assert.NoError(t, err)
		assert.Equal(t, len(lost), 0)
	}
	_, err := s.Configure(t.Context(), queue, storage.ConfigEdit{Shards: new(2)})
	assert.NoError(t, err)
	_, err = s.Redrive(t.Context(), time.Time{}, queue, storage.Filter{State: storage.Dead, Limit: 100})
	assert.ErrorIs(t, err, storage.ErrConflict)
	assert.Equal(t, repairAll(t, s, queue), 0)
	assert.Equal(t, s.layoutOf(queue).counts, []int{2})
	assert.Equal(t, repairAll(t, s, queue), 0) // R14: counts add up
	st, err := s.Stats(t.Context(), time.Time{}, queue)
	assert.NoError(t, err)
	assert.Equal(t, []int64{st.Dead, st.Done}, []int64{each, each})
	page, err := s.List(t.Context(), time.Time{}, queue, storage.Filter{State: storage.Dead, Untold: true, Limit: 100})
	assert.NoError(t, err)
	assert.Equal(t, len(page.Records), each)
	assert.Equal(t, len(page.Records[0].History), 1)
	assert.NoError(t, s.Told(t.Context(), queue, []storage.DeadID{{ID: page.Records[3].ID, Seq: page.Records[3].Seq}}))
	page, err = s.List(t.Context(), time.Time{}, queue, storage.Filter{State: storage.Dead, Untold: true, Limit: 100})
	assert.NoError(t, err)
	assert.Equal(t, len(page.Records), each-1)
	b, err := s.Redrive(t.Context(), time.Time{}, queue, storage.Filter{State: storage.Dead, Limit: 100})
	assert.NoError(t, err)
	assert.Equal(t, b.Count, each)
	got := 0
	for range 4 {
		got += len(take(t, s, queue, 100))
	}
	assert.Equal(t, got, each)
}

// Calls by id mean the newest finished record, also if an older one was carried home behind it.
func TestNewestOfFinishedRecordsThatMove(t *testing.T) {
	t.Parallel()
	s := openQuiet(t, redistest.Shared(t).URL())
	queue := spreadQueue(t, s, 0, storage.ConfigEdit{})
	ids := []string{"a", "b", "c", "d", "e", "f", "g", "h"} // most of them have another home than the first shard
	bury := func() {
		for left := len(ids); left > 0; {
			var ss []storage.Settlement
			for _, r := range take(t, s, queue, left) {
				ss = append(ss, storage.Settlement{Receipt: r.Receipt(queue), Verdict: storage.Bury})
			}
			_, err := s.Settle(t.Context(), time.Time{}, ss)
			assert.NoError(t, err)
			left -= len(ss)
		}
	}
	for _, body := range []string{"older", "newer"} {
		for _, id := range ids {
			put(t, s, queue, storage.Record{ID: id, Body: []byte(body)})
		}
		if body == "newer" {
			assert.Equal(t, repairAll(t, s, queue), 0) // carries the older ones home
			assert.Equal(t, s.layoutOf(queue).counts, []int{5})
		}
		bury()
		_, err := s.Configure(t.Context(), queue, storage.ConfigEdit{Shards: new(5)})
		assert.NoError(t, err)
	}
	for _, id := range ids {
		r, err := s.Get(t.Context(), time.Time{}, queue, id)
		assert.NoError(t, err)
		assert.Equal(t, string(r.Body), "newer")
		b, err := s.Redrive(t.Context(), time.Time{}, queue, storage.Filter{State: storage.Dead, ID: id, Limit: 1})
		assert.NoError(t, err)
		assert.Equal(t, b.Count, 1)
		r, err = s.Get(t.Context(), time.Time{}, queue, id)
		assert.NoError(t, err)
		assert.Equal(t, string(r.Body), "newer")
	}
}

// A dedup window stays where it was begun, and keeps the older count until it has ended.
func TestWindowsOutliveAChangeOfShards(t *testing.T) {
	t.Parallel()
	s := openQuiet(t, redistest.Shared(t).URL())
	queue := spreadQueue(t, s, 0, storage.ConfigEdit{})
	const window = time.Second
	for i := range 20 {
		put(t, s, queue, storage.Record{ID: strconv.Itoa(i), Key: "k", DedupFor: window})
	}
	var ss []storage.Settlement
	for _, r := range take(t, s, queue, 100) {
		ss = append(ss, storage.Settlement{Receipt: r.Receipt(queue), Verdict: storage.Ack})
	}
	_, err := s.Settle(t.Context(), time.Time{}, ss)
	assert.NoError(t, err)
	ended := time.Now().Add(window)
	_, err = s.Configure(t.Context(), queue, storage.ConfigEdit{Shards: new(9)})
	assert.NoError(t, err)
	repairAll(t, s, queue)
	assert.Equal(t, s.layoutOf(queue).counts, []int{1, 9})
	for i := range 20 {
		r := put(t, s, queue, storage.Record{ID: strconv.Itoa(i), Key: "k"})
		assert.True(t, r[0].Outcome == storage.Duplicate || time.Now().After(ended), "stored again in its window")
	}
	redistest.Until(t, "the window ends", func() bool {
		repairAll(t, s, queue)
		return len(s.layoutOf(queue).counts) == 1
	})
	assert.True(t, time.Now().After(ended.Add(-50*time.Millisecond)))
}

// No more than four counts at a time: the fifth has to wait.
func TestTooManyChangesOfShards(t *testing.T) {
	t.Parallel()
	s, queue := openQuiet(t, redistest.Shared(t).URL()), storagetest.NewQueueName()
	put(t, s, queue, storage.Record{ID: "a"})
	for _, n := range []int{2, 3, 4, 2} {
		_, err := s.Configure(t.Context(), queue, storage.ConfigEdit{Shards: &n})
		assert.NoError(t, err)
	}
	_, err := s.Configure(t.Context(), queue, storage.ConfigEdit{Shards: new(5)})
	assert.ErrorIs(t, err, storage.ErrConflict)
	_, err = s.Configure(t.Context(), queue, storage.ConfigEdit{Ordered: new(true)})
	assert.ErrorIs(t, err, storage.ErrConflict)
	_, err = s.Configure(t.Context(), queue, storage.ConfigEdit{Shards: new(storage.MaxShards + 1)})
	assert.ErrorIs(t, err, storage.ErrInvalid)
	assert.Equal(t, put(t, s, queue, storage.Record{ID: "a"})[0].Outcome, storage.Duplicate)
}

// A shard whose server is down does not stop the others.
func TestAShardIsDown(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, redistest.Config("cluster-require-full-coverage", "no"))
	s := openQuiet(t, c.URL())
	queue := spreadQueue(t, s, 12, storage.ConfigEdit{})
	for i := range 240 {
		put(t, s, queue, storage.Record{ID: strconv.Itoa(i)})
	}
	on := 0
	for i := range 240 {
		if n := slot(shardTag("default/"+queue+"/", home(strconv.Itoa(i), 12))) * 3 / slots; n != 2 {
			on++
		}
	}
	c.Nodes[2].Kill()
	got := 0
	redistest.Until(t, "all of the others is claimed", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		claimed, err := s.Claim(ctx, time.Time{}, storage.Claim{Queue: queue, Limit: 50, Lease: time.Minute})
		if err == nil {
			got += len(claimed.Records)
		}
		return got >= on-20 // a shard may lie across the border of a node
	})
}
