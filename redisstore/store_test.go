// SPDX-License-Identifier: Apache-2.0

package redisstore_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/internal/redistest"
	"github.com/bidemq/bide/redisstore"
	"github.com/bidemq/bide/storage"
	"github.com/bidemq/bide/storage/storagetest"
)

// silent is for tests that break connections on purpose.
func silent() redisstore.Options {
	return redisstore.Options{Logger: slog.New(slog.DiscardHandler)}
}

// opener opens an engine on a server, and closes it with the test.
func opener(url string) storagetest.Open {
	return func(t *testing.T) storage.Engine { return open(t, url) }
}

func open(t testing.TB, url string) *redisstore.Store {
	t.Helper()
	s, err := redisstore.OpenWith(t.Context(), url, silent())
	assert.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	return s
}

func claim(t testing.TB, e storage.Engine, queue string, limit int, lease time.Duration) storage.Claimed {
	t.Helper()
	c, err := e.Claim(t.Context(), time.Time{}, storage.Claim{Queue: queue, Limit: limit, Lease: lease, By: "test"})
	assert.NoError(t, err)
	return c
}

func enqueue(t testing.TB, e storage.Engine, queue string, recs ...storage.Record) []storage.EnqueueResult {
	t.Helper()
	results, err := e.Enqueue(t.Context(), time.Time{}, queue, recs)
	assert.NoError(t, err)
	for _, r := range results {
		assert.NoError(t, r.Err)
	}
	return results
}

func stats(t testing.TB, e storage.Engine, queue string) storage.Stats {
	t.Helper()
	st, err := e.Stats(t.Context(), time.Time{}, queue)
	assert.NoError(t, err)
	return st
}

func TestEngine(t *testing.T) {
	t.Parallel()
	storagetest.Run(t, opener(redistest.Shared(t).URL()))
}

// The suite's queues have random names, so that they are spread over the slots of all three nodes;
// every script of a queue touches its own slot only, or the cluster refuses it. Random programs
// would show no more than on a single server: the scripts are the same.
func TestEngineOnCluster(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t)
	t.Run("Rules", func(t *testing.T) { storagetest.Rules(t, opener(c.URL())) })
	t.Run("Crowd", func(t *testing.T) { storagetest.Crowd(t, opener(c.URL())) })
	for _, n := range c.Nodes {
		assert.True(t, n.Do(t, "DBSIZE") != "0", "a node that holds nothing")
	}
}
