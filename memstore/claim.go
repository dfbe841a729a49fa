// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"cmp"

	"github.com/bidemq/bide/storage"
)

// claim is one claim under way.
type claim struct {
	*call
	storage.Claim
	scope   storage.Scope
	keyless bool // records without a key are asked for and not held back
	out     storage.Claimed
	size    int
	full    bool // by MaxBytes
}

func (c *call) claim(cl storage.Claim) storage.Claimed {
	k := &claim{call: c, Claim: cl, scope: cl.Scope(), out: storage.Claimed{Now: c.now, Next: storage.Forever}}
	if c.config.Paused { // R15
		c.total.EmptyClaims++
		return k.out
	}
	at, ok := c.keylessAt()
	k.keyless = ok && !at.After(c.now) && k.scope.Has("") // R18
	k.run()
	if len(k.out.Records) == 0 {
		c.total.EmptyClaims++
	}
	if k.full {
		k.out.Next = 0
	} else if at, ok := c.nextAt(&k.scope); ok {
		k.out.Next = max(0, at.Sub(c.now))
	}
	return k.out
}

// run takes turn after turn until there is enough. R3
func (k *claim) run() {
	for k.more() {
		r, g := k.first()
		switch {
		case r == nil && g == nil:
			return
		case g == nil && k.Group:
			for r != nil && k.more() {
				k.take(r)
				r = k.firstKeyless()
			}
		case g == nil:
			k.take(r)
		default:
			k.turn(g)
		}
		if k.Group && len(k.out.Records) > 0 {
			return
		}
	}
}

func (k *claim) more() bool { return !k.full && len(k.out.Records) < k.Limit }

// first returns the record without a key, or the group, that is first in the claim order.
func (k *claim) first() (*record, *group) {
	for p := storage.MaxPriority; p >= 0; p-- {
		r := k.dueKeyless(p)
		g := k.call.turn(&k.scope, p)
		if g != nil && g.stands.since.After(k.now) {
			g = nil
		}
		switch {
		case r == nil && g == nil:
		case r == nil || g != nil && cmp.Or(r.Due.Compare(g.stands.since), cmp.Compare(r.Seq, g.number)) > 0:
			return nil, g
		default:
			return r, nil
		}
	}
	return nil, nil
}

func (k *claim) firstKeyless() *record {
	for p := storage.MaxPriority; p >= 0; p-- {
		if r := k.dueKeyless(p); r != nil {
			return r
		}
	}
	return nil
}

func (k *claim) dueKeyless(priority int) *record {
	r, ok := k.call.keyless[priority].Min()
	if !ok || !k.keyless || r.Due.After(k.now) {
		return nil
	}
	return r
}

// turn takes the head of a group, or a run of it.
func (k *claim) turn(g *group) {
	head, _ := g.waiting.Min()
	if !k.take(head) || !k.Group && (k.config.MinBatch <= 1 || k.config.Ordered) {
		return
	}
	for k.more() {
		r, ok := g.waiting.Min()
		if !ok || r.Due.After(k.now) || !k.config.Ordered && k.blocked(g) {
			return
		}
		k.take(r)
	}
}

// take leases a due record unless it is past its expiry, which the sweep may have left over, or too
// large for what is asked.
func (k *claim) take(r *record) bool {
	if r.ExpireIn > 0 && !r.Expires().After(k.now) { // R13
		k.expire(r)
		return false
	}
	size := payloadSize(r)
	if k.MaxBytes > 0 && k.size+size > k.MaxBytes && len(k.out.Records) > 0 {
		k.full = true
		return false
	}
	k.size += size
	k.lease(r)
	k.out.Records = append(k.out.Records, r.view(k.now))
	return true
}

func payloadSize(r *record) int {
	n := len(r.Body)
	for name, value := range r.Headers {
		n += len(name) + len(value)
	}
	return n
}

// lease hands a waiting record out. R5
func (k *claim) lease(r *record) {
	k.unplace(r)
	k.total.Claimed++
	k.token = max(k.token+1, k.now.UnixMicro())
	r.Attempts++
	r.Deliveries++
	r.State = storage.Leased
	r.Lease = storage.Lease{Token: k.token, Until: k.now.Add(storage.Millis(k.Lease)), By: k.By}
	k.leased.Set(r)
	if g := k.keys[r.Key]; g != nil {
		g.leased.Set(r)
		g.served, g.number = k.now, k.token
		k.place(g)
	}
}
