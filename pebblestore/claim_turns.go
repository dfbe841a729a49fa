// SPDX-License-Identifier: Apache-2.0

package pebblestore

import "github.com/bidemq/bide/storage"

// candidate is what may be claimed next: a record without a key, or the group whose turn it is.
type candidate struct {
	priority int
	place    // of the record or of the turn
	key      string
	record   *record // without a key
}

// takeTurns takes turn after turn until there is enough. R3
func (k *claim) takeTurns() error {
	for k.more() {
		next, found, err := k.first()
		if err != nil || !found {
			return err
		}
		switch {
		case next.key == "" && k.Group:
			err = k.runAlone(next)
		case next.key == "":
			_, err = k.takeAlone(next.record)
		default:
			err = k.turn(next)
		}
		if err != nil || k.Group && len(k.out.Records) > 0 {
			return err
		}
	}
	return nil
}

// runAlone takes records without a key only.
func (k *claim) runAlone(next candidate) error {
	for found := true; found && k.more(); {
		if _, err := k.takeAlone(next.record); err != nil {
			return err
		}
		found = false
		for p := storage.MaxPriority; p >= 0 && !found; p-- {
			var err error
			if next, found, err = k.alone(p); err != nil {
				return err
			}
		}
	}
	return nil
}

// first returns what is first in the claim order of what is due.
func (k *claim) first() (candidate, bool, error) {
	for p := storage.MaxPriority; p >= 0; p-- {
		alone, hasAlone, err := k.alone(p)
		if err != nil {
			return candidate{}, false, err
		}
		turn, hasTurn, err := k.turnAt(p)
		if err != nil {
			return candidate{}, false, err
		}
		hasTurn = hasTurn && turn.at <= k.now
		if hasTurn && (!hasAlone || turn.less(alone.place)) {
			return turn, true, nil
		}
		if hasAlone {
			return alone, true, nil
		}
	}
	return candidate{}, false, nil
}

// alone returns the first due record of a priority without a key.
func (k *claim) alone(priority int) (candidate, bool, error) {
	b := &k.waiting[priority]
	if !k.keyless || b.exact && (b.empty || b.low.at > k.now) {
		return candidate{}, false, nil
	}
	r, err := k.upcoming(priority)
	if r == nil || err != nil {
		return candidate{}, false, err
	}
	return candidate{priority: priority, place: r.place(), record: r}, r.due <= k.now, nil
}

// turnAt returns the turn of the scope that is first among those of a priority.
func (k *claim) turnAt(priority int) (candidate, bool, error) {
	if err := k.settleTurns(); err != nil {
		return candidate{}, false, err
	}
	if len(k.Keys) > 0 {
		return k.namedTurn(priority)
	}
	best, found, err := k.storedTurn(priority)
	if err != nil {
		return best, false, err
	}
	k.eachMoved(priority, func(g *keyGroup) bool {
		if !k.scope.Has(g.key) {
			return true
		}
		if !found || g.turn.less(best.place) || g.turn.place == best.place && g.key < best.key {
			best, found = candidate{priority: priority, place: g.turn.place, key: g.key}, true
		}
		return false
	})
	return best, found, nil
}

// namedTurn looks at the keys that were asked for, which are few.
func (k *claim) namedTurn(priority int) (best candidate, found bool, err error) {
	for _, key := range k.Keys {
		g, err := k.alive(key)
		if err != nil {
			return best, false, err
		}
		if g == nil || !g.placed || g.turn.priority != priority {
			continue
		}
		if !found || g.turn.less(best.place) || g.turn.place == best.place && g.key < best.key {
			best, found = candidate{priority: priority, place: g.turn.place, key: g.key}, true
		}
	}
	return best, found, nil
}

// storedTurn returns the first turn on disk of a group about which the disk is right.
func (k *claim) storedTurn(priority int) (candidate, bool, error) {
	b := &k.call.turns[priority]
	if b.exact && b.empty {
		return candidate{}, false, nil
	}
	it := k.turns[priority]
	all := turnPrefix(k.name, priority)
	if it == nil {
		var err error
		it, err = k.t.iterFrom(k.t.flushed, turnKey(k.name, "", turn{b.low, priority}), after(all))
		if err != nil {
			return candidate{}, false, err
		}
		k.turns[priority] = it
		if it.First() {
			p, _, err := parseTurn(it.Key()[len(all):])
			b.first(p, err == nil)
		} else if it.Error() == nil {
			b.first(place{}, false)
		}
	}
	for ; it.Valid(); it.Next() {
		p, key, err := parseTurn(it.Key()[len(all):])
		if err != nil {
			return candidate{}, false, err
		}
		if k.changedGroups[string(key)] == nil && k.scope.Has(string(key)) {
			return candidate{priority: priority, place: p, key: string(key)}, true, nil
		}
	}
	return candidate{}, false, diskError(it.Error())
}

// turn takes the head of a group, or a run of it.
func (k *claim) turn(next candidate) error {
	g, err := k.alive(next.key)
	if err != nil {
		return err
	}
	if g == nil || !g.placed || g.turn != (turn{next.place, next.priority}) { // a turn without a key
		k.mark()
		k.t.del(turnKey(k.name, next.key, turn{next.place, next.priority}))
		k.call.turns[next.priority].remove(next.place)
		if it := k.turns[next.priority]; it != nil {
			it.Next()
		}
		return nil
	}
	for n := 0; k.more(); n++ {
		found, err := k.headOf(g)
		if err != nil {
			return err
		}
		if g.ended || !found || n > 0 && (g.head.due > k.now || !k.config.Ordered && k.blocked(g)) {
			return nil
		}
		leased, err := k.takeMember(g)
		if err != nil || n == 0 && (!leased || !k.Group && (k.config.MinBatch <= 1 || k.config.Ordered)) {
			return err
		}
	}
	return nil
}

// takeMember takes the head of a group, and says whether it was leased.
func (k *claim) takeMember(g *keyGroup) (leased bool, err error) {
	r, encoded, err := k.records.waiting(g.head.seq, g.head.stateful)
	if err != nil {
		return false, k.damaged(g.head.seq, err)
	}
	if r == nil || r.key != g.key || k.ordered(r) != g.head.place { // a place without a record
		k.dropMember(g)
		return false, nil
	}
	leased, _, err = k.take(r, encoded)
	return leased, err
}
