// SPDX-License-Identifier: Apache-2.0

package bide_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/storage"
)

func keysOf(t *testing.T, client *bide.Client, f storage.KeyFilter) (names []string) {
	t.Helper()
	for k, err := range client.Keys(t.Context(), "events", f) {
		assert.NoError(t, err)
		names = append(names, k.Key)
	}
	return names
}

func TestKeys(t *testing.T) {
	bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) {
		var all []string
		for i := range 450 {
			key := fmt.Sprintf("game-%03d", i)
			all = append(all, key)
			putEvents(t, client, key, 0, 1)
			pass(time.Millisecond)
		}
		putEvents(t, client, "game-007", 1, 2)
		putEvents(t, client, "", 0, 1)
		assert.Equal(t, keysOf(t, client, storage.KeyFilter{}), all)
		assert.Equal(t, keysOf(t, client, storage.KeyFilter{Limit: 201}), all[:201])
		assert.Equal(t, keysOf(t, client, storage.KeyFilter{After: "game-447"}), all[448:])
		assert.Equal(t, keysOf(t, client, storage.KeyFilter{Key: "game-007"}), []string{"game-007"})
		assert.Equal(t, keysOf(t, client, storage.KeyFilter{By: storage.Largest, Limit: 2}), []string{"game-007", "game-000"})
		assert.Equal(t, keysOf(t, client, storage.KeyFilter{By: storage.Oldest, Limit: 2}), []string{"game-000", "game-001"})
		assert.Equal(t, len(keysOf(t, client, storage.KeyFilter{By: storage.Oldest})), 200)

		k, err := client.KeyStats(t.Context(), "events", "game-007")
		assert.NoError(t, err)
		assert.Equal(t, []int64{k.Waiting, k.Leased}, []int64{3, 0})
		k, err = client.KeyStats(t.Context(), "events", "nobody")
		assert.NoError(t, err)
		assert.Equal(t, k, storage.KeyStats{Key: "nobody"})
		_, err = client.KeyStats(t.Context(), "events", "")
		assert.ErrorIs(t, err, bide.ErrInvalid)
		for _, bad := range []storage.KeyFilter{{Limit: -1}, {By: storage.Oldest, After: "a"}, {By: storage.Oldest, Limit: storage.MaxBatch + 1}} {
			for _, err := range client.Keys(t.Context(), "events", bad) {
				assert.ErrorIs(t, err, bide.ErrInvalid)
			}
		}
	})
}

// A bounded queue says what it dropped, or refuses.
func TestResultSaysWhatWasDropped(t *testing.T) {
	bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) {
		_, err := client.Configure(t.Context(), "events", storage.ConfigEdit{MaxPerKey: new(2), MaxLen: new(3), Overflow: new(storage.DropOldest)})
		assert.NoError(t, err)
		putEvents(t, client, "a", 0, 2)
		r, err := events.Enqueue(t.Context(), client, 2, bide.ID("a2"), bide.Key("a"))
		assert.NoError(t, err)
		assert.Equal(t, []any{r.Outcome, r.Dropped}, []any{storage.Stored, []string{"a0"}})
		putEvents(t, client, "b", 0, 1)
		results, err := events.EnqueueMany(t.Context(), client, []int{1}, func(_ int, m *bide.Message) { m.ID, m.Key = "b1", "b" })
		assert.NoError(t, err)
		assert.Equal(t, results[0].Dropped, []string{"a1"})
		r, err = events.Enqueue(t.Context(), client, 2, bide.ID("b1"), bide.Key("b"))
		assert.NoError(t, err)
		assert.Equal(t, []any{r.Outcome, r.Dropped}, []any{storage.Duplicate, []string(nil)})

		_, err = client.Configure(t.Context(), "events", storage.ConfigEdit{Overflow: new(storage.Refuse)})
		assert.NoError(t, err)
		r, err = events.Enqueue(t.Context(), client, 9, bide.ID("b9"), bide.Key("b"))
		assert.ErrorIs(t, err, bide.ErrFull)
		assert.Equal(t, []any{r.Outcome, r.ID, r.Dropped}, []any{storage.Refused, "b9", []string(nil)})
	})
}
