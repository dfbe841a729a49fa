// SPDX-License-Identifier: Apache-2.0

package redisstore_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/internal/redistest"
	"github.com/bidemq/bide/redisstore"
	"github.com/bidemq/bide/storage"
	"github.com/bidemq/bide/storage/storagetest"
)

// An answer says that the replicas have it; if they do not say so, that nobody knows. R9
func TestReplicasHaveWhatIsAnswered(t *testing.T) {
	t.Parallel()
	set := redistest.StartSentinels(t)
	store := open(t, set.Primary.URL()+"?replicas=1")
	queue := storagetest.NewQueueName()
	records := redisstore.QueueKeys("", queue)[1]
	rec := func(i int) storage.Record { return storage.Record{ID: strconv.Itoa(i)} }
	for i := range 50 {
		enqueue(t, store, queue, rec(i))
		assert.Equal(t, set.Replica.Do(t, "HEXISTS", records, strconv.Itoa(i)), "1")
	}
	claimed, err := store.Claim(t.Context(), time.Time{}, storage.Claim{Queue: queue, Limit: 10, Lease: time.Minute})
	assert.NoError(t, err)
	for _, r := range claimed.Records {
		lost, err := store.Settle(t.Context(), time.Time{}, []storage.Settlement{{Receipt: r.Receipt(queue), Verdict: storage.Ack}})
		assert.NoError(t, err)
		assert.Equal(t, len(lost), 0)
		assert.Equal(t, set.Replica.Do(t, "HEXISTS", records, r.ID), "0")
	}

	set.Replica.Kill()
	began := time.Now()
	_, err = store.Enqueue(t.Context(), time.Time{}, queue, []storage.Record{rec(100)})
	assert.ErrorIs(t, err, storage.ErrUnavailable)
	assert.True(t, time.Since(began) > 900*time.Millisecond, time.Since(began))
	set.Replica.Follow(t, set.Primary)
	set.Healthy(t)
	res, err := store.Enqueue(t.Context(), time.Time{}, queue, []storage.Record{rec(100)})
	assert.NoError(t, err)
	assert.Equal(t, res[0].Outcome, storage.Duplicate)
	assert.Equal(t, set.Replica.Do(t, "HEXISTS", records, "100"), "1")
}

// Scripts that the server has forgotten are sent again, and bad numbers of replicas are refused.
func TestReplicasAndForgottenScripts(t *testing.T) {
	t.Parallel()
	set := redistest.StartSentinels(t)
	store := open(t, set.Primary.URL()+"?replicas=1")
	queue := storagetest.NewQueueName()
	for i := range 3 {
		set.Primary.Do(t, "SCRIPT", "FLUSH")
		enqueue(t, store, queue, storage.Record{ID: strconv.Itoa(i)})
	}
	for _, url := range []string{"?replicas=x", "?replicas=-1"} {
		_, err := redisstore.Open(t.Context(), set.Primary.URL()+url)
		assert.ErrorIs(t, err, storage.ErrInvalid)
	}
	_, err := redisstore.OpenWith(t.Context(), set.Primary.URL(), redisstore.Options{Replicas: -1})
	assert.ErrorIs(t, err, storage.ErrInvalid)
}

// The rules hold on a Cluster whose replicas answer.
func TestReplicasOnACluster(t *testing.T) {
	t.Parallel()
	c := redistest.StartReplicatedCluster(t)
	store := open(t, c.URL()+"?replicas=1")
	for range 20 { // queues in slots of all primaries
		queue := storagetest.NewQueueName()
		enqueue(t, store, queue, storage.Record{ID: "a"})
		claimed, err := store.Claim(t.Context(), time.Time{}, storage.Claim{Queue: queue, Limit: 1, Lease: time.Minute})
		assert.NoError(t, err)
		assert.Equal(t, len(claimed.Records), 1)
		lost, err := store.Settle(t.Context(), time.Time{}, []storage.Settlement{{Receipt: claimed.Records[0].Receipt(queue), Verdict: storage.Ack}})
		assert.NoError(t, err)
		assert.Equal(t, len(lost), 0)
	}
}
