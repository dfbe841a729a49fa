// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"encoding/hex"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/internal/redisconn"
	"github.com/bidemq/bide/internal/redistest"
	"github.com/bidemq/bide/storage"
	"github.com/bidemq/bide/storage/storagetest"
)

// setClock makes a queue believe that its clock has shown an instant.
func setClock(t *testing.T, s *Store, server *redistest.Server, queue string, at time.Time) {
	t.Helper()
	meta := s.keys(queue)[0]
	script := `local n = redis.call('HGET', KEYS[1], 's')
		return redis.call('HSET', KEYS[1], 's', string.sub(n, 1, 14) .. struct.pack('>I7', ARGV[1]) .. string.sub(n, 22))`
	server.Do(t, "EVAL", script, "1", meta, decimal(at.UnixMilli()))
}

// R2: a small step back of the server's clock stands still, a large one is followed and counted.
func TestClockDoesNotRunBackwards(t *testing.T) {
	t.Parallel()
	server, queue := redistest.Shared(t), storagetest.NewQueueName()
	s := openQuiet(t, server.URL())
	_, err := s.Enqueue(t.Context(), time.Time{}, queue, []storage.Record{{ID: "a"}})
	assert.NoError(t, err)
	now := func() time.Time {
		st, err := s.Stats(t.Context(), time.Time{}, queue)
		assert.NoError(t, err)
		return st.Now
	}
	ahead := now().Add(storage.MaxClockStep - time.Second)
	setClock(t, s, server, queue, ahead)
	assert.Equal(t, now(), ahead)
	assert.Equal(t, now(), ahead)

	before := time.Now()
	setClock(t, s, server, queue, before.Add(time.Hour))
	assert.True(t, now().Before(before.Add(time.Minute)))
	st, err := s.Stats(t.Context(), time.Time{}, queue)
	assert.NoError(t, err)
	assert.Equal(t, st.Total.ClockSteps, 1)

	// An explicit instant does not move the clock.
	_, err = s.Stats(t.Context(), before.Add(20*time.Hour), queue)
	assert.NoError(t, err)
	assert.True(t, now().Before(before.Add(time.Minute)))
}

func TestAnotherFormatIsRefused(t *testing.T) {
	t.Parallel()
	server, queue := redistest.Shared(t), storagetest.NewQueueName()
	s := openQuiet(t, server.URL())
	_, err := s.Enqueue(t.Context(), time.Time{}, queue, []storage.Record{{ID: "a"}})
	assert.NoError(t, err)
	server.Do(t, "HSET", s.keys(queue)[0], "v", "1")
	_, err = s.Enqueue(t.Context(), time.Time{}, queue, []storage.Record{{ID: "b"}})
	assert.ErrorIs(t, err, storage.ErrFormat)
	_, err = s.Claim(t.Context(), time.Time{}, storage.Claim{Queue: queue, Limit: 1, Lease: time.Minute})
	assert.ErrorIs(t, err, storage.ErrFormat)
	_, err = s.Get(t.Context(), time.Time{}, queue, "a")
	assert.ErrorIs(t, err, storage.ErrFormat)
}

// A key of another kind under one of our names is an answer that no category fits.
func TestScriptErrorsNameTheScript(t *testing.T) {
	t.Parallel()
	server, queue := redistest.Shared(t), storagetest.NewQueueName()
	s := openQuiet(t, server.URL())
	server.Do(t, "SET", s.keys(queue)[0], "x")
	_, err := s.Get(t.Context(), time.Time{}, queue, "a")
	script, ok := errors.AsType[*ScriptError](err)
	assert.True(t, ok, err)
	assert.Equal(t, script.Script, "get")
	assert.True(t, strings.Contains(err.Error(), "WRONGTYPE"), err)
}

// A record takes what docs/redis-layout.md says.
func TestMemoryOfADelayedMessage(t *testing.T) {
	t.Parallel()
	server, queue := redistest.Start(t), storagetest.NewQueueName()
	s := openQuiet(t, server.URL())
	const n = 20_000
	fill := func(from, to int) {
		for i := from; i < to; i += 1000 {
			recs := make([]storage.Record, 1000)
			for j := range recs {
				id := hex.EncodeToString([]byte(decimal(int64(1e12 + i + j))))[:26]
				recs[j] = storage.Record{ID: id, Body: make([]byte, 256), Delay: time.Duration(i+j) * time.Second}
			}
			_, err := s.Enqueue(t.Context(), time.Time{}, queue, recs)
			assert.NoError(t, err)
		}
	}
	used := func() int64 {
		var got int64
		for name, value := range redisconn.ParseInfo(server.Do(t, "INFO", "memory")) {
			if name == "used_memory" {
				for _, c := range value {
					got = got*10 + int64(c-'0')
				}
			}
		}
		return got
	}
	before := used()
	fill(0, n)
	each := (used() - before) / n
	t.Logf("%d bytes a delayed message of 256 bytes", each)
	assert.True(t, each < 620, each)
}
