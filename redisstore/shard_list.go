// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/bidemq/bide/storage"
)

// comparePositions says which of two positions comes first.
func comparePositions(a, b storage.Position, desc bool) int {
	if desc {
		a, b = b, a
	}
	return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Seq, b.Seq))
}

// inShard is a filter as one shard understands it.
func (l *layout) inShard(f storage.Filter, i int) storage.Filter {
	if l.version == 0 || f.After == (storage.Position{}) {
		return f
	}
	behind := max(f.After.Seq, 0) - int64(i)
	f.After.Seq = behind / storage.MaxShards // rounded to what is behind, in either order
	switch rest := behind % storage.MaxShards; {
	case rest > 0 && f.Desc:
		f.After.Seq++
	case behind < 0:
		f.After.Seq = 0
	}
	return f
}

// listSpread merges the pages of all shards. It also returns how many of the records are from each.
func (s *Store) listSpread(ctx context.Context, now time.Time, l *layout, f storage.Filter) (storage.Page, []int, error) {
	pages := make([]storage.Page, len(l.shards))
	err := l.each(func(i int, at shard) error {
		var err error
		pages[i], err = s.listAt(ctx, now, at, l.inShard(f, i))
		for k := range pages[i].Records {
			pages[i].Records[k].Seq = l.spreadSeq(pages[i].Records[k].Seq, i)
		}
		pages[i].Last.Seq = l.spreadSeq(pages[i].Last.Seq, i)
		return err
	})
	if err != nil {
		return storage.Page{}, nil, err
	}
	if len(pages) == 1 {
		return pages[0], []int{len(pages[0].Records)}, nil
	}
	page, from := merge(pages, &f)
	return page, from, nil
}

// merge puts pages together, up to where each of them has been looked at, or to the limit.
func merge(pages []storage.Page, f *storage.Filter) (storage.Page, []int) {
	var all storage.Page
	type one struct {
		r *storage.Record
		i int
	}
	var rows []one
	from := make([]int, len(pages))
	var last, horizon storage.Position
	for i := range pages {
		p := &pages[i]
		if p.Last == (storage.Position{}) {
			continue
		}
		if last == (storage.Position{}) || comparePositions(p.Last, last, f.Desc) > 0 {
			last = p.Last
		}
		if p.More && (!all.More || comparePositions(p.Last, horizon, f.Desc) < 0) {
			all.More, horizon = true, p.Last
		}
		for k := range p.Records {
			rows = append(rows, one{&p.Records[k], i})
		}
	}
	position := func(r *storage.Record) storage.Position { return storage.Position{At: r.At(), Seq: r.Seq} }
	slices.SortFunc(rows, func(a, b one) int { return comparePositions(position(a.r), position(b.r), f.Desc) })
	if all.More {
		last = horizon
	}
	for _, row := range rows {
		if all.More && comparePositions(position(row.r), horizon, f.Desc) > 0 {
			break
		}
		if len(all.Records) == f.Limit {
			all.More, last = true, position(&all.Records[f.Limit-1])
			break
		}
		all.Records = append(all.Records, *row.r)
		from[row.i]++
	}
	all.Last = last
	return all, from
}

// inSteps does something to the records that a filter selects: a listing says how many of them are the first
// of each shard.
func (s *Store) inSteps(ctx context.Context, now time.Time, queue string, f storage.Filter,
	do func(ctx context.Context, now time.Time, at shard, f storage.Filter) (storage.Batch, error),
) (storage.Batch, error) {
	var sum storage.Batch
	err := s.over(ctx, queue, func(l *layout) error {
		if len(l.shards) == 1 {
			b, err := do(ctx, now, l.shards[0], l.inShard(f, 0))
			b.Last.Seq = l.spreadSeq(b.Last.Seq, 0)
			sum = b
			return err
		}
		page, from, err := s.listSpread(ctx, now, l, f)
		if err != nil {
			return err
		}
		sum.More, sum.Last = page.More, page.Last
		for i, n := range from {
			if n == 0 {
				continue
			}
			g := l.inShard(f, i)
			g.Limit = n
			b, err := do(ctx, now, l.shards[i], g)
			if err != nil {
				return err
			}
			sum.Count += b.Count
			sum.Skipped += b.Skipped
			last := storage.Position{At: b.Last.At, Seq: l.spreadSeq(b.Last.Seq, i)}
			if b.More && comparePositions(last, sum.Last, f.Desc) < 0 {
				sum.More, sum.Last = true, last
			}
		}
		return nil
	})
	return sum, err
}

// redriveSpread makes dead records ready. While records move nobody can say whether their keys and ids are
// in use elsewhere, so it is refused until that is over.
func (s *Store) redriveSpread(ctx context.Context, now time.Time, queue string, f storage.Filter) (storage.Batch, error) {
	if f.ID == "" {
		return s.inSteps(ctx, now, queue, f, s.redriveSettled)
	}
	var found storage.Batch
	err := s.over(ctx, queue, func(l *layout) error {
		var missing error
		for k := range l.shards {
			i := (home(f.ID, l.newest()) + k) % len(l.shards)
			b, err := s.redriveSettled(ctx, now, l.shards[i], l.inShard(f, i))
			if err == nil {
				b.Last.Seq = l.spreadSeq(b.Last.Seq, i)
				found = b
				return nil
			}
			if !errors.Is(err, storage.ErrNotFound) {
				return err
			}
			missing = err
		}
		return missing
	})
	return found, err
}

// redriveSettled is redriveAt for a shard of a queue whose records do not move. The script does nothing if the
// shard has another layout.
func (s *Store) redriveSettled(ctx context.Context, now time.Time, at shard, f storage.Filter) (storage.Batch, error) {
	l, err := parseLayout(at.name, at.layout)
	if err != nil || len(l.counts) == 1 {
		return s.redriveAt(ctx, now, at, f)
	}
	if _, _, _, err := s.configureAt(ctx, at, "0", storage.QueueConfig{}, "", ""); err != nil {
		return storage.Batch{}, err // the layout may be an old one
	}
	queue, _ := cutShard(at.name)
	return storage.Batch{}, fmt.Errorf("redisstore: %w: queue %q moves from %v shards, its dead messages are redriven when that is over",
		storage.ErrConflict, queue, l.counts)
}
