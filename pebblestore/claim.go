// SPDX-License-Identifier: Apache-2.0

package pebblestore

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/bidemq/bide/storage"
)

// Claim implements [storage.Engine]. R3 R4
func (s *Store) Claim(ctx context.Context, now time.Time, cl storage.Claim) (storage.Claimed, error) {
	if err := cl.Check(); err != nil {
		return storage.Claimed{}, wrap("claim", cl.Queue, err)
	}
	var claimed storage.Claimed
	err := s.on(ctx, "claim", cl.Queue, now, func(c *call) error {
		k := claim{call: c, Claim: cl, out: storage.Claimed{Now: instant(c.now)}}
		err := k.run()
		claimed = k.out
		c.sooner = false // what the sweep made claimable, this claim has seen
		if err == nil {
			s.notices.claimed(cl.Queue, claimed.Next)
		}
		return err
	})
	if err != nil {
		return storage.Claimed{}, err
	}
	return claimed, nil
}

// claim is one claim under way.
type claim struct {
	*call
	storage.Claim
	out     storage.Claimed
	size    int              // of the payloads claimed
	records *pebble.Iterator // over R, nil until there is something to read
}

func (k *claim) run() error {
	if k.config.Paused { // R15
		k.total.EmptyClaims++
		k.out.Next = storage.Forever
		return nil
	}
	full := false
	for p := storage.MaxPriority; p >= 0 && !full; p-- {
		for again := true; again && !full && len(k.out.Records) < k.Limit; {
			var err error
			if full, again, err = k.scan(p); err != nil {
				if len(k.out.Records) > 0 { // they are leased, and the next claim meets the error
					k.out.Next = 0
					return nil
				}
				return err
			}
		}
	}
	if len(k.out.Records) == 0 {
		k.total.EmptyClaims++
	}
	if full {
		k.out.Next = 0
		return nil
	}
	return k.next()
}

// next finds out when to come back.
func (k *claim) next() error {
	for p := range k.waiting {
		if err := k.head(&k.waiting[p], waitingPrefix(k.name, p)); err != nil {
			return err
		}
	}
	k.out.Next = storage.Forever
	if at, _ := k.nextAt(); at != math.MaxInt64 {
		k.out.Next = time.Duration(max(0, at-k.now)) * time.Millisecond
	}
	return nil
}

// scan leases what is due of one priority, from its bound on. It says whether the bytes are used
// up, and whether a record that it does not see may have become due meanwhile.
func (k *claim) scan(priority int) (full, again bool, err error) {
	b := &k.waiting[priority]
	if b.exact && (b.empty || b.low.at > k.now) {
		return false, false, nil
	}
	all := waitingPrefix(k.name, priority)
	places, err := k.t.iter(waitingKey(k.name, priority, b.low), after(all))
	if err != nil {
		return false, false, err
	}
	defer func() { err = errors.Join(err, places.Close()) }()
	from := prefix(kindRecord, k.name)
	if k.records, err = k.t.iter(from, after(from)); err != nil {
		return false, false, err
	}
	defer func() { err = errors.Join(err, k.records.Close()) }()

	for ok := places.First(); ok; ok = places.Next() {
		p, err := parsePlace(places.Key())
		if err != nil {
			return false, false, err
		}
		if p.at > k.now || len(k.out.Records) == k.Limit {
			b.first(p, true)
			return false, false, nil
		}
		stateful := len(places.Value()) == 1 && places.Value()[0] == 1
		full, started, err := k.take(priority, p, stateful)
		if full || started || err != nil {
			return full, started, err
		}
	}
	if err := places.Error(); err != nil {
		return false, false, diskError(err)
	}
	b.first(place{}, false)
	return false, false, nil
}

// take leases the record of a place, or drops it if it is past its expiry, which the sweep may have
// left over. started says that a successor took its place.
func (k *claim) take(priority int, p place, stateful bool) (full, started bool, err error) {
	r, encoded, err := k.read(p.seq, stateful)
	if err != nil {
		return false, false, k.damaged(p.seq, err)
	}
	if r == nil || r.state != storage.Ready || r.priority != priority || r.place() != p { // a place without a record
		k.mark()
		k.skip(priority, p)
		return false, false, nil
	}
	if r.expired(k.now) { // R13
		started = r.successor
		return false, started, k.expire(r)
	}
	content, size, err := decodePayload(encoded)
	if err != nil {
		return false, false, k.damaged(p.seq, err)
	}
	if k.MaxBytes > 0 && k.size+size > k.MaxBytes && len(k.out.Records) > 0 {
		k.waiting[priority].first(p, true)
		return true, false, nil
	}
	k.size += size
	k.lease(r)
	k.out.Records = append(k.out.Records, r.view(k.now, content))
	return false, false, nil
}

// read reads a waiting record, nil if there is none. The payload is valid until the next read.
func (k *claim) read(seq int64, stateful bool) (*record, []byte, error) {
	if !k.records.SeekGE(seqKey(kindRecord, k.name, seq)) {
		return nil, nil, diskError(k.records.Error())
	}
	if n, err := number(k.records.Key()); err != nil || n != seq {
		return nil, nil, err
	}
	r, encoded, err := decodeRecord(k.records.Value())
	if err != nil {
		return nil, nil, err
	}
	if held := k.leases.byID[r.id]; held != nil && held.seq == seq {
		return nil, nil, nil
	}
	if stateful {
		err = k.loadState(r)
	}
	return r, encoded, err
}

// lease hands a waiting record out. R5
func (k *claim) lease(r *record) {
	k.mark()
	k.total.Claimed++
	k.pass(r)
	if r.stateful {
		k.t.del(seqKey(kindState, k.name, r.seq))
		r.stateful = false
	}
	k.token = max(k.token+1, k.now*1000)
	r.attempts++
	r.deliveries++
	r.state, r.token, r.until, r.by = storage.Leased, k.token, k.now+millis(k.Lease), k.By
	k.t.set(seqKey(kindLease, k.name, r.seq), encodeState(r))
	k.leases.add(r)
	k.tally(r, storage.Leased, 1)
}
