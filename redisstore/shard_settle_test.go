// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/internal/redistest"
	"github.com/bidemq/bide/storage"
)

// A settlement that takes so many records along that it needs two scripts meets a change of the layout between them:
// what the first has settled is not asked about again, and so is not lost. R5
func TestLayoutChangesWithinASettlement(t *testing.T) {
	t.Parallel()
	url := redistest.Shared(t).URL()
	for _, shards := range []int{0, 2} {
		t.Run(strconv.Itoa(shards), func(t *testing.T) {
			t.Parallel()
			s, other := openQuiet(t, url), openQuiet(t, url)
			queue := spreadQueue(t, s, shards, storage.ConfigEdit{Ordered: new(true)})
			var keys []string // in one shard
			for i := 0; len(keys) < 3; i++ {
				if key := strconv.Itoa(i); home(key, 2) == 0 {
					keys = append(keys, key)
				}
			}
			var rs []storage.Receipt
			for k, n := range []int{900, 900, 1} {
				var recs []storage.Record
				for i := range n {
					recs = append(recs, storage.Record{ID: fmt.Sprint(keys[k], "/", i), Key: keys[k]})
				}
				put(t, s, queue, recs...)
				c, err := s.Claim(t.Context(), time.Time{}, storage.Claim{Queue: queue, Group: true, Keys: keys[k : k+1], Limit: n, Lease: time.Minute})
				assert.NoError(t, err)
				assert.Equal(t, len(c.Records), n)
				rs = append(rs, c.Records[0].Receipt(queue))
			}
			words, calls := settleWords([]storage.Settlement{
				{Receipt: rs[0], Verdict: storage.Retry}, {Receipt: rs[1], Verdict: storage.Retry}, {Receipt: rs[2], Verdict: storage.Ack},
			}), 0
			lost, err := s.perQueue(t.Context(), settleScript, []string{""}, rs, func(i int) (string, string) {
				if calls++; calls == len(rs)+1 { // the first script has settled two
					_, err := other.Configure(t.Context(), queue, storage.ConfigEdit{Shards: new(5)})
					assert.NoError(t, err)
				}
				return rs[i].ID, words[i]
			})
			assert.NoError(t, err)
			assert.Equal(t, lost, nil)
			assert.True(t, calls > len(rs), calls)
			st, err := s.Stats(t.Context(), time.Time{}, queue)
			assert.NoError(t, err)
			assert.Equal(t, []int64{st.Ready, st.Leased, st.Total.Acked}, []int64{1800, 0, 1})
		})
	}
}

// Receipts of one key that another process has claimed are settled in the order of the call. R11
func TestSettlesARunOfAnotherProcessInOrder(t *testing.T) {
	t.Parallel()
	url := redistest.Shared(t).URL()
	claimer, other := openQuiet(t, url), openQuiet(t, url)
	queue := spreadQueue(t, claimer, 7, storage.ConfigEdit{Ordered: new(true)})
	const run = 20
	for i := range run {
		put(t, claimer, queue, storage.Record{ID: strconv.Itoa(i), Key: "k"})
	}
	c, err := claimer.Claim(t.Context(), time.Time{}, storage.Claim{Queue: queue, Group: true, Limit: run, Lease: time.Minute})
	assert.NoError(t, err)
	var ss []storage.Settlement
	for _, r := range slices.Backward(c.Records) { // the other way around, each would take those along that come later
		ss = append(ss, storage.Settlement{Receipt: r.Receipt(queue), Verdict: storage.Return})
	}
	lost, err := other.Settle(t.Context(), time.Time{}, ss)
	assert.NoError(t, err)
	assert.Equal(t, lost, nil)
}
