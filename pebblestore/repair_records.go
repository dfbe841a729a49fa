// SPDX-License-Identifier: Apache-2.0

package pebblestore

import (
	"github.com/bidemq/bide/storage"
)

// lookRecord sees to it that all that follows from a record is there.
func (r *repair) lookRecord(e entry) error {
	seq, err := number(e.rest)
	if err != nil {
		return err
	}
	rec, _, err := r.load("", seq, false)
	if err != nil || rec == nil {
		return err
	}
	if r.audit != nil {
		r.audit.see(rec)
	}
	if err := r.lookID(rec); err != nil {
		return err
	}
	switch rec.state {
	case storage.Ready:
		return r.lookWaiting(rec)
	case storage.Dead, storage.Done:
		return r.lookFinished(rec)
	default:
		return nil
	}
}

func (r *repair) has(key []byte) (bool, error) {
	return r.t.get(r.queue, "", key, func([]byte) error { return nil })
}

func (r *repair) lookID(rec *record) error {
	key := idKey(kindID, r.name, rec.id)
	if rec.state == storage.Dead || rec.state == storage.Done {
		return nil
	}
	has, err := r.has(key)
	if err == nil && has {
		var other *record // the id may belong to somebody else
		if other, err = r.owner(rec.id); err == nil {
			has = other != nil
		}
	}
	if err != nil || has {
		return err
	}
	r.fix("record without id", func() {
		r.setID(rec.id, rec.seq)
		r.t.touch(r.queue, rec.id)
	})
	return nil
}

// owner is the live record that the id of I leads to, nil if it leads nowhere.
func (r *repair) owner(id string) (*record, error) {
	if held := r.leases.byID[id]; held != nil {
		return held, nil
	}
	return r.waitingByID(id)
}

func (r *repair) lookWaiting(rec *record) error {
	p := rec.place()
	keys := [][]byte{waitingKey(r.name, rec.priority, p)}
	low := r.waiting[rec.priority].low
	if rec.key != "" {
		keys[0], low = keyedKey(r.name, rec.priority, p), r.keyed[rec.priority].low
		keys = append(keys, memberKey(r.name, rec.key, r.ordered(rec)))
	}
	if rec.expireIn > 0 {
		keys = append(keys, placeKey(kindExpiry, r.name, place{rec.expires(), rec.seq}))
	}
	placed := !p.less(low)
	for _, key := range keys {
		has, err := r.has(key)
		if err != nil {
			return err
		}
		placed = placed && has
	}
	if placed {
		return nil
	}
	if err := r.know(rec.key); err != nil {
		return err
	}
	if r.dry && rec.key != "" && r.audit != nil {
		r.audit.unplaced = true
	}
	r.fix("record without place", func() { r.replaceRecord(rec) })
	return nil
}

// replaceRecord writes the places of a waiting record again. What is counted does not change, and a
// key that is not known is made anew when all its members are there.
func (r *repair) replaceRecord(rec *record) {
	if rec.key == "" {
		r.waitAlone(rec)
	} else {
		r.t.set(keyedKey(r.name, rec.priority, rec.place()), nil)
		m := member{r.ordered(rec), rec.due, rec.priority, rec.stateful}
		r.t.set(memberKey(r.name, rec.key, m.place), encodeMember(m))
		r.t.touch(r.queue, membersOf(rec.key))
		r.review(r.groups[rec.key])
	}
	if rec.expireIn > 0 {
		r.t.set(placeKey(kindExpiry, r.name, place{rec.expires(), rec.seq}), nil)
	}
	r.t.touch(r.queue, rec.id)
	r.sooner = true
	r.reset()
}

func (r *repair) lookFinished(rec *record) error {
	keys := [][]byte{placeKey(kindDone, r.name, rec.at()), finishedKey(r.name, rec.id, rec.seq)}
	what := "done record without place"
	if rec.state == storage.Dead {
		keys[0], what = placeKey(kindDead, r.name, rec.at()), "dead record without place"
		if rec.untold {
			keys = append(keys, placeKey(kindUntold, r.name, rec.at()))
		}
	}
	for _, key := range keys {
		has, err := r.has(key)
		if err != nil {
			return err
		}
		if !has {
			r.fix(what, func() {
				for _, key := range keys {
					r.t.set(key, nil)
				}
				r.t.touch(r.queue, rec.id)
				r.reset()
			})
			return nil
		}
	}
	return nil
}
