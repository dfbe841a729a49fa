// SPDX-License-Identifier: Apache-2.0

package pebblestore

import (
	"context"
	"errors"
	"slices"
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
	cl.Keys, cl.Except = slices.Clone(cl.Keys), slices.Clone(cl.Except)
	err := s.on(ctx, "claim", cl.Queue, now, func(c *call) error {
		k := claim{call: c, Claim: cl, scope: cl.Scope(), out: storage.Claimed{Now: instant(c.now)}, records: reading{call: c, written: true}}
		c.parts = c.parts || !k.scope.All()
		swept := c.sooner && !k.scope.All()
		err := errors.Join(k.run(), k.close())
		claimed = k.out
		c.sooner = swept || k.started // what the sweep made claimable, a claim of all has seen
		if err == nil {
			s.notices.claimed(&k.scope, claimed.Next)
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
	scope   storage.Scope
	keyless bool // records without a key are asked for and not held back
	out     storage.Claimed
	size    int64 // of the payloads claimed
	full    bool  // by MaxBytes
	started bool  // a successor began
	records reading
	turns   [priorities]*pebble.Iterator
}

func (k *claim) run() error {
	if k.config.Paused { // R15
		k.total.EmptyClaims++
		k.out.Next = storage.Forever
		return nil
	}
	at, err := k.keylessAt()
	if err != nil {
		return err
	}
	k.keyless = at <= k.now && k.scope.Has("") // R18
	if err := k.takeAll(); err != nil {
		if len(k.out.Records) > 0 { // they are leased, and the next claim meets the error
			k.out.Next = 0
			return nil
		}
		return err
	}
	if len(k.out.Records) == 0 {
		k.total.EmptyClaims++
	}
	if k.full {
		k.out.Next = 0
		return nil
	}
	return k.next()
}

func (k *claim) more() bool { return !k.full && len(k.out.Records) < k.Limit }

// takeAll leases what is due. A queue in which nothing has a key needs no turns.
func (k *claim) takeAll() error {
	for p := storage.MaxPriority; p >= 0 && k.keys == 0 && k.keyless && k.more(); {
		again, err := k.scan(p)
		if err != nil {
			return err
		}
		if again {
			p = storage.MaxPriority
		} else {
			p--
		}
	}
	if k.keys == 0 {
		return nil
	}
	return k.takeTurns()
}

// close forgets what was read ahead.
func (k *claim) close() error {
	errs := []error{k.records.close()}
	for i, it := range k.turns {
		if it != nil {
			errs = append(errs, it.Close())
		}
		k.turns[i] = nil
	}
	return diskError(errors.Join(errs...))
}

// scan leases what is due of one priority of records without a key. It says whether a record that it
// does not see may have become due meanwhile.
func (k *claim) scan(priority int) (again bool, err error) {
	if b := &k.waiting[priority]; b.exact && (b.empty || b.low.at > k.now) {
		return false, nil
	}
	for k.more() {
		r, err := k.upcoming(priority)
		if r == nil || err != nil || r.due > k.now {
			return false, err
		}
		if began, err := k.takeAlone(r); k.full || began || err != nil {
			return began, err
		}
	}
	return false, nil
}

func isStateful(value []byte) bool { return len(value) == 1 && value[0] == 1 }

// takeAlone leases an upcoming record without a key. It says whether a successor began.
func (k *claim) takeAlone(r *record) (began bool, err error) {
	encoded := r.payload
	if encoded == nil {
		var stored *record
		if stored, encoded, err = k.load(r.id, r.seq, true); err != nil {
			return false, err
		}
		if stored == nil { // a place without a record
			k.mark()
			k.leaveAhead(r.priority, r.place())
			k.skip(r.priority, r.place())
			return false, nil
		}
	}
	_, began, err = k.take(r, encoded)
	return began, err
}

// take leases a due record, or drops it if it is past its expiry, which the sweep may have left over.
// It says whether the record was leased, and whether a successor began in its place. The payload
// becomes the caller's of the claim.
func (k *claim) take(r *record, encoded []byte) (leased, began bool, err error) {
	if r.expired(k.now) { // R13
		began = r.successor
		k.started = k.started || began
		err := k.expire(r)
		if began {
			err = errors.Join(err, k.close())
		}
		return false, began, err
	}
	content, size, err := decodePayload(encoded)
	if err != nil {
		return false, false, k.damaged(r.seq, err)
	}
	if k.MaxBytes > 0 && k.size+int64(size) > int64(k.MaxBytes) && len(k.out.Records) > 0 {
		k.full = true
		return false, false, nil
	}
	if err := k.know(r.key); err != nil {
		return false, false, err
	}
	k.size += int64(size)
	r.size = int64(size)
	k.lease(r)
	k.out.Records = append(k.out.Records, r.view(k.now, content))
	return true, false, nil
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
	k.grantTo(r)
	k.leases.add(r)
	k.tally(r, storage.Leased, 1)
	if r.key != "" {
		g := k.group(r)
		g.served, g.number = k.now, k.token
	}
}
