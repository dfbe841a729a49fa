// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"testing"
	"time"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/internal/redistest"
	"github.com/bidemq/bide/storage"
	"github.com/bidemq/bide/storage/storagetest"
)

// R13: what begins when a record of an idle key goes, and has expired by then, goes with the same call,
// though nothing was known to expire when the call began.
func TestSuccessorsOfIdleRecordsExpireAtOnce(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	storagetest.Replay(t, func(t *testing.T) storage.Engine { return openQuiet(t, server.URL()) }, storagetest.Program{
		{Do: "enqueue", IDs: []string{"a"}, Key: "k"},
		{Do: "claim", N: 1, Lease: 20 * time.Millisecond},
		{Do: "enqueue", IDs: []string{"a"}, OnLive: storage.Rerun, ExpireIn: time.Millisecond},
		{Do: "get", After: 50 * time.Millisecond, IDs: []string{"a"}},
		{Do: "configure", Set: "KeyIdle", Delay: 20 * time.Millisecond},
	})
}

// R14: a record that Repair finds a successor for keeps it when it is claimed.
func TestRepairedSuccessorOutlivesAClaim(t *testing.T) {
	t.Parallel()
	server, queue := redistest.Shared(t), storagetest.NewQueueName()
	s := openQuiet(t, server.URL())
	now := time.UnixMilli(1_700_000_000_000).UTC()
	claim := storage.Claim{Queue: queue, Limit: 1, Lease: time.Hour}
	_, err := s.Enqueue(t.Context(), now, queue, []storage.Record{{ID: "a"}})
	assert.NoError(t, err)
	_, err = s.Claim(t.Context(), now, claim)
	assert.NoError(t, err)
	_, err = s.Enqueue(t.Context(), now, queue, []storage.Record{{ID: "a", OnLive: storage.Rerun}})
	assert.NoError(t, err)
	server.Do(t, "HDEL", s.keys(queue)[1], "\x01a")
	storagetest.RepairAll(t, s, now, queue, storage.MaxBatch, false)
	c, err := s.Claim(t.Context(), now, claim)
	assert.NoError(t, err)
	assert.Equal(t, len(c.Records), 1)
	assert.True(t, c.Records[0].Successor)
	_, err = s.Settle(t.Context(), now, []storage.Settlement{{Receipt: c.Records[0].Receipt(queue), Verdict: storage.Ack}})
	assert.NoError(t, err)
	a, err := s.Get(t.Context(), now, queue, "a")
	assert.NoError(t, err)
	assert.Equal(t, a.State, storage.Ready)
}
