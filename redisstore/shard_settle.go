// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/bidemq/bide/storage"
)

// settleSpread sends two arguments for each of some receipts to the shards that the leases are from, and
// returns those that are lost. A receipt does not name its shard: this process knows it if it has claimed the
// record. Any other is asked about where its id lives if it has no key, and then everywhere. R5
func (s *Store) settleSpread(ctx context.Context, sc *script, queue string, head []string, rs []storage.Receipt, which []int,
	each func(i int) (string, string),
) ([]int, error) {
	sp := s.spreadFor(queue)
	search := &search{asked: make([][]int, len(rs)), sure: make([]bool, len(rs)), left: which}
	began := time.Now()
	var lost, settled []int
	err := s.over(ctx, queue, func(l *layout) error {
		for len(search.left) > 0 {
			groups, gone := search.next(l, &sp.claimed, rs, sp.ordered())
			lost = append(lost, gone...)
			answers := make([]answer, len(groups))
			var all sync.WaitGroup
			for k := range groups {
				all.Go(func() {
					a := &answers[k]
					a.done, a.lost, a.err = s.settleAt(ctx, sc, l.shards[groups[k].shard], head, groups[k].which, each)
				})
			}
			all.Wait()
			errs := make([]error, len(groups))
			search.left = nil
			for k, g := range groups {
				errs[k] = answers[k].err
				search.left = append(search.left, g.which[answers[k].done:]...)
				for _, i := range g.which[:answers[k].done] {
					switch {
					case !slices.Contains(answers[k].lost, i):
						settled = append(settled, i)
					case search.sure[i]:
						lost = append(lost, i)
						settled = append(settled, i) // whose lease is over as well
					default:
						search.asked[i] = append(search.asked[i], g.shard)
						search.left = append(search.left, i)
					}
				}
			}
			slices.Sort(search.left)
			if err := cmp.Or(errs...); err != nil {
				return err
			}
		}
		return nil
	})
	over := make([]storage.Receipt, len(settled))
	for k, i := range settled {
		over[k] = rs[i]
	}
	if sc == extendScript {
		lease, _ := strconv.ParseInt(head[1], 10, 64)
		sp.claimed.extend(over, began.Add(time.Duration(lease)*time.Millisecond))
	} else {
		sp.claimed.remove(over)
	}
	slices.Sort(lost)
	return lost, err
}

// Shard implements [storage.Sharder].
func (s *Store) Shard(r storage.Receipt) int {
	sp := s.spreadOf(r.Queue)
	if sp == nil {
		return 0
	}
	shard, _ := sp.claimed.of(r)
	return shard
}

type answer struct {
	done int // receipts that it is about, the first of those asked for
	lost []int
	err  error
}

// search looks for the shards of receipts.
type search struct {
	asked [][]int // shards that said lost, by receipt
	sure  []bool  // the next shard asked is the one
	left  []int
}

// group is what one shard is asked about.
type group struct {
	shard int
	which []int
}

// next returns whom to ask about which receipts, and those that nobody is left to be asked about. In an ordered
// queue the receipts of a key are to be settled in their order, so if any is to be looked for, all are asked about
// together, in one shard after the other. R11
func (f *search) next(l *layout, known *claimed, rs []storage.Receipt, ordered bool) (groups []group, gone []int) {
	var at [storage.MaxShards]int // index into groups, from 1
	together := ordered && slices.ContainsFunc(f.left, func(i int) bool {
		_, ok := known.of(rs[i])
		return !ok
	})
	for _, i := range f.left {
		shard, ok := known.of(rs[i])
		if f.sure[i] = ok && !together && shard < len(l.shards) && len(f.asked[i]) == 0; !f.sure[i] {
			shard = f.elsewhere(l, i, rs[i].ID, together)
		}
		if shard < 0 {
			gone = append(gone, i)
			continue
		}
		if at[shard] == 0 {
			groups = append(groups, group{shard: shard})
			at[shard] = len(groups)
		}
		g := &groups[at[shard]-1]
		g.which = append(g.which, i)
	}
	return groups, gone
}

// elsewhere returns the next shard to be asked about an id, which is the same for all that are asked about together;
// -1 if there is none.
func (f *search) elsewhere(l *layout, i int, id string, together bool) int {
	for _, shard := range l.homes(id) {
		if !together && !slices.Contains(f.asked[i], shard) {
			return shard
		}
	}
	for shard := range l.shards {
		if !slices.Contains(f.asked[i], shard) {
			return shard
		}
	}
	return -1
}
