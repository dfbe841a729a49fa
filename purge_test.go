// SPDX-License-Identifier: Apache-2.0

package bide_test

import (
	"slices"
	"testing"
	"time"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/storage"
)

// everyMinute schedules 450 messages a minute apart, of which 220 are ready.
func everyMinute(t *testing.T, client *bide.Client) []string {
	t.Helper()
	ids := schedule(t, client, 450, func(i int) time.Duration { return time.Duration(i) * time.Minute })
	pass(219 * time.Minute)
	return ids
}

func TestPurgeByRank(t *testing.T) {
	for _, c := range []struct {
		name        string
		desc        bool
		first, last int
		left        func(ids []string) []string
	}{
		{"the first", false, 0, 0, func(ids []string) []string { return ids[1:] }},
		{"the first, ready and delayed", false, 0, 299, func(ids []string) []string { return ids[300:] }},
		{"the last", true, 0, 9, func(ids []string) []string { return ids[:440] }},
		{"the last, delayed and ready", true, 0, 299, func(ids []string) []string { return ids[:150] }},
		{"some in the middle", false, 210, 229, func(ids []string) []string { return slices.Delete(slices.Clone(ids), 210, 230) }},
		{"some from the end", true, 220, 239, func(ids []string) []string { return slices.Delete(slices.Clone(ids), 210, 230) }},
		{"further than there are", false, 440, 1000, func(ids []string) []string { return ids[:440] }},
		{"behind the end", false, 450, 460, func(ids []string) []string { return ids }},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) {
				ids := everyMinute(t, client)
				f := storage.Filter{State: bide.Waiting, Desc: c.desc}
				b, err := client.PurgeRanks(t.Context(), "orders", f, c.first, c.last)
				assert.NoError(t, err)
				left := c.left(ids)
				assert.Equal(t, b.Count, len(ids)-len(left))
				assert.Equal(t, idsOf(t, client, storage.Filter{State: bide.Waiting}), left)
			})
		})
	}
}

// Ranks are counted among what the filter selects.
func TestPurgeByRankInARange(t *testing.T) {
	bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) {
		ids := everyMinute(t, client)
		f := storage.Filter{State: storage.Delayed, From: time.Now().Add(100 * time.Minute)}
		b, err := client.PurgeRanks(t.Context(), "orders", f, 1, 2)
		assert.NoError(t, err)
		assert.Equal(t, b.Count, 2)
		assert.Equal(t, idsOf(t, client, storage.Filter{State: bide.Waiting}), slices.Delete(slices.Clone(ids), 320, 322))
	})
}

func TestRanksThatMakeNoSense(t *testing.T) {
	bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) {
		put(t, client, "a")
		waiting := storage.Filter{State: bide.Waiting}
		for _, c := range []struct {
			f           storage.Filter
			first, last int
		}{
			{waiting, -1, 0},
			{waiting, 0, -1},
			{waiting, 5, 4},
			{waiting, 0, int(^uint(0) >> 1)},
			{storage.Filter{State: bide.Waiting, Limit: 1}, 0, 0},
			{storage.Filter{State: storage.Leased}, 3, 4},
			{storage.Filter{}, 0, 1},
		} {
			_, err := client.PurgeRanks(t.Context(), "orders", c.f, c.first, c.last)
			assert.ErrorIs(t, err, bide.ErrInvalid, c)
		}
		assert.Equal(t, idsOf(t, client, waiting), []string{"a"})
	})
}

func TestPurgeOfWhatWaits(t *testing.T) {
	bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) {
		ids := everyMinute(t, client)
		now := time.Now()
		purge := func(f storage.Filter) int {
			f.State = bide.Waiting
			b, err := client.Purge(t.Context(), "orders", f)
			assert.NoError(t, err)
			return b.Count
		}
		assert.Equal(t, purge(storage.Filter{From: now.Add(-9 * time.Minute), To: now.Add(11 * time.Minute)}), 20)
		left := slices.Delete(slices.Clone(ids), 210, 230)
		assert.Equal(t, idsOf(t, client, storage.Filter{State: bide.Waiting}), left)
		assert.Equal(t, purge(storage.Filter{ID: ids[0]}), 1)
		assert.Equal(t, purge(storage.Filter{ID: ids[0]}), 0)
		assert.Equal(t, purge(storage.Filter{Limit: 220}), 220)
		assert.Equal(t, idsOf(t, client, storage.Filter{State: bide.Waiting}), left[221:])
		assert.Equal(t, purge(storage.Filter{}), 209)
		assert.Equal(t, purge(storage.Filter{}), 0)
	})
}
