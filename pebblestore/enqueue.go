// SPDX-License-Identifier: Apache-2.0

package pebblestore

import (
	"context"
	"fmt"
	"time"

	"github.com/bidemq/bide/storage"
)

// offer is one record that a producer offers, checked and encoded outside of the writer.
type offer struct {
	draft
	due    int64 // instant, if dueSet
	dueSet bool
	delay  int64
	onLive storage.OnLive
	err    error // why it is refused
}

func newOffer(in *storage.Record, maxBody int) offer {
	if err := in.Check(maxBody); err != nil {
		return offer{err: err}
	}
	o := offer{
		draft: draft{
			record: &record{
				id: in.ID, key: in.Key, priority: in.Priority,
				expireIn:    millis(in.ExpireIn),
				dedupFor:    millis(in.DedupFor),
				maxAttempts: in.MaxAttempts,
				state:       storage.Ready,
			},
			payload: appendPayload(make([]byte, 0, 8+len(in.Body)), payload{in.Body, in.Headers}),
		},
		delay:  millis(in.Delay),
		onLive: in.OnLive,
	}
	if !in.Due.IsZero() {
		o.due, o.dueSet = storage.DueMilli(in.Due), true
	}
	return o
}

// Enqueue implements [storage.Engine].
func (s *Store) Enqueue(ctx context.Context, now time.Time, queue string, recs []storage.Record) ([]storage.EnqueueResult, error) {
	if err := storage.CheckBatch(len(recs)); err != nil {
		return nil, wrap("enqueue", queue, err)
	}
	offers := make([]offer, len(recs))
	for i := range recs {
		offers[i] = newOffer(&recs[i], s.maxBody)
	}
	results := make([]storage.EnqueueResult, len(recs))
	err := s.on(ctx, "enqueue", queue, now, func(c *call) error {
		for i := range offers {
			var err error
			if results[i], err = c.enqueue(&offers[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return results, nil
}

// enqueue stores one record. R1
func (c *call) enqueue(o *offer) (storage.EnqueueResult, error) {
	r := o.record
	result := storage.EnqueueResult{Outcome: storage.Refused, Now: instant(c.now)}
	if !c.resolve(o) {
		result.Err = o.err
		return result, nil
	}
	old, err := c.find(r.id)
	if err != nil {
		return result, err
	}
	if err := c.know(r.key); err != nil {
		return result, err
	}
	window := int64(0)
	if old == nil {
		if window, err = c.window(r.id); err != nil {
			return result, err
		}
	}
	leased := old != nil && old.state == storage.Leased
	switch {
	case old != nil && (o.onLive == storage.Keep || o.onLive == storage.Rerun && !leased):
		result.Seq, result.Due = old.seq, instant(old.due)
		fallthrough
	case old == nil && o.onLive == storage.Keep && window > c.now:
		result.Outcome = storage.Duplicate
		c.mark()
		c.total.Duplicates++
		return result, nil
	}
	if !leased {
		if !c.fits(o, old) {
			result.Err = o.err
			return result, nil
		}
		if old != nil {
			if err := c.know(old.key); err != nil {
				return result, err
			}
		}
	}
	c.keep()
	c.mark()
	c.seq++
	r.seq = c.seq
	result.Seq, result.Due = r.seq, instant(r.due)
	switch {
	case leased:
		result.Outcome = storage.Reran
		c.total.Reruns++
		c.follow(old, o.draft)
		return result, nil
	case old != nil:
		result.Outcome = storage.Replaced
		c.total.Replaced++
		c.drop(old)
	default:
		result.Outcome = storage.Stored
		c.free(r.id, window)
	}
	if result.Dropped, err = c.makeRoom(r); err != nil {
		return result, err
	}
	c.start(&o.draft)
	return result, nil
}

// resolve fills in what depends on the instant of the call, and says whether the record may be
// stored.
func (c *call) resolve(o *offer) bool {
	if o.err != nil {
		return false
	}
	r := o.record
	if c.config.Ordered && r.priority > 0 { // R11
		o.err = fmt.Errorf("priority %d in an ordered queue: %w", r.priority, storage.ErrInvalid)
		return false
	}
	r.due = c.now + o.delay
	if o.dueSet {
		r.due = o.due
	}
	r.firstDue, r.enqueued = r.due, c.now
	if r.expireIn == 0 {
		r.expireIn = millis(c.config.ExpireIn)
	}
	if r.expired(c.now) {
		o.err = fmt.Errorf("%q: %w", r.id, storage.ErrExpired)
	}
	return o.err == nil
}

// fits says whether there is room for the record. R12
func (c *call) fits(o *offer, old *record) bool {
	o.err = c.room(o.record, old)
	return o.err == nil
}

// follow attaches a successor to a leased record, in place of the one it may have.
func (c *call) follow(r *record, next draft) {
	c.store(kindSuccessor, r.seq, next.record, next.payload)
	if !r.successor {
		r.successor = true
		c.grantTo(r)
	}
}
