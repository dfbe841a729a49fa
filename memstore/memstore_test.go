// SPDX-License-Identifier: Apache-2.0

package memstore_test

import (
	"testing"
	"time"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/memstore"
	"github.com/bidemq/bide/storage"
	"github.com/bidemq/bide/storage/storagetest"
)

func TestEngine(t *testing.T) {
	storagetest.Run(t, func(t *testing.T) storage.Engine {
		s := memstore.New(memstore.Options{})
		t.Cleanup(func() { _ = s.Close() })
		return s
	})
}

// R2 R3: a clock that steps back far does not leave a key waiting for a turn in the future.
func TestClockStepsBack(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(1_700_000_000_000)
	s := memstore.New(memstore.Options{Clock: func() time.Time { return now }})
	recs := []storage.Record{{ID: "a", Key: "k", Due: now.Add(-2 * time.Hour)}, {ID: "b", Key: "k", Due: now.Add(-2 * time.Hour)}}
	_, err := s.Enqueue(t.Context(), time.Time{}, "q", recs)
	assert.NoError(t, err)
	for _, want := range []string{"a", "b"} {
		c, err := s.Claim(t.Context(), time.Time{}, storage.Claim{Queue: "q", Limit: 1, Lease: time.Second})
		assert.NoError(t, err)
		assert.Equal(t, len(c.Records), 1, "of", want)
		assert.Equal(t, c.Records[0].ID, want)
		now = now.Add(-time.Hour)
	}
	st, err := s.Stats(t.Context(), time.Time{}, "q")
	assert.NoError(t, err)
	assert.Equal(t, st.Total.ClockSteps, int64(2))
}
