// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/bidemq/bide/storage"
)

// moved answers, for a record that may live elsewhere, that neither its id nor its key is in use here, and
// will not be: nobody places it here any more. See enqueue.lua.
const moved storage.Outcome = 5

// enqueueSpread stores records where they live: in the shard that holds live records of the same key, or of
// the same id, or has the id in its dedup window, and in the newest home otherwise. It asks the older homes
// first. R1
//
// A shard answers only callers that know its layout. So once it has said that a key or an id has moved, no
// caller with an older layout can place anything of it there any more, and it stays moved.
func (s *Store) enqueueSpread(ctx context.Context, now time.Time, queue string, recs []storage.Record, results []storage.EnqueueResult) error {
	e := &spreadEnqueue{store: s, ctx: ctx, now: now, recs: recs, results: results, asked: make([]int, len(recs))}
	for i := range recs {
		if results[i].Err == nil {
			e.left = append(e.left, i)
		}
	}
	var known *layout
	err := s.over(ctx, queue, func(l *layout) error {
		if known != nil && known.text != l.text {
			clear(e.asked)
		}
		known = l
		if len(e.left) == 0 {
			return e.instant(l)
		}
		for len(e.left) > 0 {
			if err := e.round(l); err != nil {
				return err
			}
		}
		return e.instant(l)
	})
	return err
}

// spreadEnqueue is a batch on its way.
type spreadEnqueue struct {
	store   *Store
	ctx     context.Context
	now     time.Time
	recs    []storage.Record
	results []storage.EnqueueResult
	asked   []int // older homes, by record
	left    []int // records without a result
}

// sent is what goes to one shard.
type sent struct {
	at      shard
	i       int
	which   []int
	recs    []storage.Record
	results []storage.EnqueueResult
	done    int
	err     error
}

// round asks one shard for each record that is left, all at once.
func (e *spreadEnqueue) round(l *layout) error {
	var all []*sent
	for _, i := range e.left {
		r := &e.recs[i]
		h, last := l.home(namesHome(r.ID, r.Key), e.asked[i])
		k := slices.IndexFunc(all, func(s *sent) bool { return s.i == h && s.at.asks == !last })
		if k < 0 {
			k = len(all)
			all = append(all, &sent{at: l.shards[h], i: h})
			all[k].at.asks = !last
		}
		all[k].which = append(all[k].which, i)
		all[k].recs = append(all[k].recs, *r)
	}
	var others sync.WaitGroup
	for _, one := range all[1:] {
		others.Go(func() { e.send(one) })
	}
	e.send(all[0])
	others.Wait()
	e.left = e.left[:0]
	var failed error
	for _, one := range all {
		for k, i := range one.which {
			switch {
			case k >= one.done:
				e.left = append(e.left, i)
			case one.results[k].Outcome == moved:
				e.asked[i]++
				e.left = append(e.left, i)
			default:
				e.results[i] = one.results[k]
				e.results[i].Seq = l.spreadSeq(one.results[k].Seq, one.i)
			}
		}
		if _, ok := errors.AsType[*layoutError](failed); one.err != nil && (failed == nil || ok) {
			failed = one.err
		}
	}
	slices.Sort(e.left) // the order of a key is that of the call
	return failed
}

func (e *spreadEnqueue) send(one *sent) {
	one.results = make([]storage.EnqueueResult, len(one.recs))
	one.done, one.err = e.store.enqueueAt(e.ctx, e.now, one.at, one.recs, one.results)
}

// instant gives those that were refused at once the instant of the call.
func (e *spreadEnqueue) instant(l *layout) error {
	at := time.Time{}
	for i := range e.results {
		if e.results[i].Now.After(at) {
			at = e.results[i].Now
		}
	}
	if at.IsZero() {
		at = e.now
	}
	if at.IsZero() || len(e.results) == 0 {
		n := min(1, len(e.recs))
		if _, err := e.store.enqueueAt(e.ctx, e.now, l.shards[0], e.recs[:n], e.results[:n]); err != nil || n == 0 {
			return err
		}
		at = e.results[0].Now
	}
	for i := range e.results {
		if e.results[i].Now.IsZero() {
			e.results[i].Now = at
		}
	}
	return nil
}
