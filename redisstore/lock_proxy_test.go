// SPDX-License-Identifier: Apache-2.0

package redisstore_test

import (
	"testing"
	"time"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/internal/redistest"
	"github.com/bidemq/bide/storage"
)

// R16: who waits for a lock over connections that die without a word gets it all the same.
func TestWaitForALockSurvivesASilentDeath(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	p := startProxy(t, server.Address())
	waits, holder := open(t, "redis+unix://"+p.path), open(t, server.URL())
	held, err := holder.Acquire(t.Context(), time.Time{}, storage.LockRequest{Name: "a", Owner: "holder", TTL: time.Hour})
	assert.NoError(t, err)
	done := make(chan error, 1)
	go func() {
		_, err := waits.Acquire(t.Context(), time.Time{}, storage.LockRequest{
			Name: "a", Owner: "waits", TTL: time.Hour, Wait: storage.Forever,
		})
		done <- err
	}()
	redistest.Until(t, "the call waits", func() bool { return server.Do(t, "ZCARD", "bide:{default/locks}:waiting") == "1" })
	p.swallow()
	began := time.Now()
	assert.NoError(t, holder.Release(t.Context(), time.Time{}, held.Receipt()))
	assert.NoError(t, <-done)
	took := time.Since(began)
	t.Logf("taken after %s", took)
	assert.True(t, took < 20*time.Second, took)
}

// R16: a server that cannot be reached any more ends a wait for a lock, though not at once.
func TestWaitForALockEndsWithTheServer(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := open(t, server.URL())
	_, err := s.Acquire(t.Context(), time.Time{}, storage.LockRequest{Name: "a", Owner: "holder", TTL: time.Hour})
	assert.NoError(t, err)
	done := make(chan error, 1)
	go func() {
		_, err := s.Acquire(t.Context(), time.Time{}, storage.LockRequest{Name: "a", Owner: "waits", TTL: time.Hour, Wait: 3 * time.Second})
		done <- err
	}()
	redistest.Until(t, "the call waits", func() bool { return server.Do(t, "ZCARD", "bide:{default/locks}:waiting") == "1" })
	server.Kill()
	assert.ErrorIs(t, <-done, storage.ErrUnavailable)
}
