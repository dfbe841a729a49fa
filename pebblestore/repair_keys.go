// SPDX-License-Identifier: Apache-2.0

package pebblestore

import "slices"

// review forgets what is remembered of a group beside its counts.
func (r *repair) review(g *keyGroup) {
	if g == nil || g.ended {
		return
	}
	r.loosen(g)
	g.low, g.exact, g.nth.exact = place{}, false, false
	r.setIdle(g)
}

// wrongKeyPlace says what is wrong with a place in an order of keys.
func (r *repair) wrongKeyPlace(kind byte, e entry) (string, error) {
	const wrong = "place without key"
	key, err := keyOf(kind, e.rest)
	if err != nil {
		return "", err
	}
	g, err := r.alive(key)
	if err != nil || g == nil {
		return wrong, err
	}
	for _, want := range r.placesOf(key, g.stored) {
		if slices.Equal(want, append(prefix(kind, r.name), e.rest...)) {
			return "", nil
		}
	}
	return wrong, nil
}

// placesOf are the places of a key in the orders of keys.
func (r *repair) placesOf(key string, s groupState) [][]byte {
	places := [][]byte{sizeKey(r.name, key, s.waiting), r.turnOf(key, s), r.headsOf(key, s), r.idleOf(key, s)}
	return slices.DeleteFunc(places, func(p []byte) bool { return p == nil })
}

// wrongMember says what is wrong with a member of a key, and counts it if nothing is.
func (r *repair) wrongMember(e entry) (string, error) {
	const wrong = "place without record"
	key, err := parseMember(e.rest)
	if err != nil {
		return "", err
	}
	p, err := parsePlace(e.rest)
	if err != nil {
		return "", err
	}
	rec, err := r.waitingAt(p.seq)
	if err != nil {
		return "", err
	}
	if rec == nil || rec.key != key || r.ordered(rec) != p {
		if err := r.know(key); err != nil {
			return "", err
		}
		if !r.dry {
			r.t.touch(r.queue, membersOf(key))
			r.review(r.groups[key])
		}
		return wrong, nil
	}
	if a := r.audit; a != nil {
		if a.crowd && a.member != key {
			if err := r.endMembers(); err != nil {
				return "", err
			}
		}
		if !a.crowd {
			a.crowd, a.member, a.members = true, key, 0
		}
		a.last = p
		a.members++
	}
	m := member{p, rec.due, rec.priority, rec.stateful}
	if got, err := decodeMember(p, e.value); err != nil || got != m {
		r.fix("wrong place", func() {
			r.t.set(memberKey(r.name, key, p), encodeMember(m))
			r.t.touch(r.queue, membersOf(key))
			r.review(r.groups[key])
		})
	}
	return "", nil
}

// endMembers compares the count of a key with what was counted, and makes a key anew that is lost.
func (r *repair) endMembers() error {
	a := r.audit
	if !a.crowd {
		return nil
	}
	a.crowd = false
	g, err := r.alive(a.member)
	if err != nil || a.unplaced {
		return err
	}
	switch {
	case g == nil && a.members == 0: // it has ended since
	case g == nil:
		r.fix("records without key", func() { r.revive(a.member, a.members) })
		if r.dry {
			a.keys++
		}
	case g.waiting != a.members:
		r.fix("wrong count of a key", func() {
			r.review(g)
			r.loosen(g)
			g.waiting = a.members
			r.setIdle(g)
		})
	}
	return nil
}

// revive makes a key anew of which nothing is known but its members and its leases.
func (r *repair) revive(key string, waiting int64) {
	g := r.groups[key]
	g = &keyGroup{
		key: key, stored: g.stored, onDisk: g.onDisk,
		groupState: groupState{waiting: waiting, served: r.now, number: max(r.seq, 1), joined: r.now},
	}
	r.groups[key] = g
	r.review(g)
	r.sooner = true
}

// lookLeasedKey makes a key anew that is lost and has leased records only.
func (r *repair) lookLeasedKey(e entry) error {
	seq, err := number(e.rest)
	if err != nil {
		return err
	}
	rec, _, err := r.load("", seq, false)
	if err != nil || rec == nil || rec.key == "" {
		return err
	}
	for _, other := range r.leases.byKey[rec.key] {
		if other.seq < seq { // which was looked at
			return nil
		}
	}
	g, err := r.alive(rec.key)
	if err != nil || g != nil {
		return err
	}
	if waits, err := r.waits(r.groups[rec.key]); err != nil || waits {
		return err
	}
	r.fix("records without key", func() { r.revive(rec.key, 0) })
	if r.dry && r.audit != nil {
		r.audit.keys++
	}
	return nil
}

// lookKey compares a key with its records and with its places.
func (r *repair) lookKey(e entry) error {
	key := string(e.rest)
	g, err := r.alive(key)
	if err != nil || g == nil {
		return err
	}
	waits, err := r.waits(g)
	if err != nil {
		return err
	}
	a := r.audit
	if !waits && len(r.leases.byKey[key]) == 0 && (a == nil || !a.unplaced) {
		r.fix("key without records", func() {
			r.loosen(g)
			g.waiting, g.ended = 0, true
		})
		return nil
	}
	if a != nil {
		a.keyed, a.key = true, key
		a.keys++
	}
	for _, want := range r.placesOf(key, g.stored) {
		has, err := r.has(want)
		if err != nil {
			return err
		}
		if !has {
			r.fix("key without place", func() {
				for _, want := range r.placesOf(key, g.stored) {
					r.t.set(want, nil)
				}
				r.reset()
			})
			break
		}
	}
	if a == nil || a.unplaced || r.replacing.on {
		return nil
	}
	return r.lookState(g)
}

// waits says whether a group has members on disk.
func (r *repair) waits(g *keyGroup) (found bool, err error) {
	err = r.members(g, place{}, func(member) (bool, error) {
		found = true
		return false, nil
	})
	return found, err
}

// lookState compares what is stored of a group with what follows from its members.
func (r *repair) lookState(g *keyGroup) error {
	again := *g
	again.low, again.exact, again.nth.exact = place{}, false, false
	found, err := r.headOf(&again)
	if err != nil {
		return err
	}
	placed := found && !r.blocked(g)
	at := turn{}
	if placed {
		held, err := r.heldUntil(&again)
		if err != nil {
			return err
		}
		at = turn{place{max(held, g.served), g.number}, again.head.priority}
	}
	if found == g.stored.headed && (!found || again.head == g.stored.head) && placed == g.stored.placed && at == g.stored.turn {
		return nil
	}
	r.fix("key out of place", func() { r.review(g) })
	return nil
}
