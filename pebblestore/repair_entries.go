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
		r.audit.see(seq, rec.state)
	}
	if err := r.lookID(rec); err != nil {
		return err
	}
	switch rec.state {
	case storage.Ready:
		return r.lookWaiting(rec)
	case storage.Dead:
		return r.lookDead(rec)
	default:
		return nil
	}
}

func (r *repair) has(key []byte) (bool, error) {
	return r.t.get(r.queue, "", key, func([]byte) error { return nil })
}

func (r *repair) lookID(rec *record) error {
	key := idKey(kindID, r.name, rec.id)
	if rec.state == storage.Dead {
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
		r.t.set(key, appendNumber(nil, rec.seq))
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
	has, err := r.has(waitingKey(r.name, rec.priority, p))
	if err != nil {
		return err
	}
	hasExpiry := true
	if rec.expireIn > 0 {
		if hasExpiry, err = r.has(placeKey(kindExpiry, r.name, place{rec.expires(), rec.seq})); err != nil {
			return err
		}
	}
	if !has || p.less(r.waiting[rec.priority].low) || !hasExpiry {
		r.fix("record without place", func() { r.place(rec) })
	}
	return nil
}

// place writes the places of a waiting record again.
func (r *repair) place(rec *record) {
	count, due := r.count, r.due
	a := r.audit
	r.audit = nil
	r.wait(rec)
	r.count, r.due, r.audit = count, due, a
	r.reset()
}

func (r *repair) lookDead(rec *record) error {
	place, finished := placeKey(kindDead, r.name, rec.at()), finishedKey(r.name, rec.id, rec.seq)
	for _, key := range [][]byte{place, finished} {
		has, err := r.has(key)
		if err != nil {
			return err
		}
		if !has {
			r.fix("dead record without place", func() {
				r.t.set(place, nil)
				r.t.set(finished, nil)
				r.t.touch(r.queue, rec.id)
			})
			return nil
		}
	}
	return nil
}

// wrong says what is wrong with an entry that follows from a record, "" if nothing is.
func (r *repair) wrong(kind byte, e entry) (string, error) {
	switch kind {
	case kindWindow:
		return r.wrongWindow(e)
	case kindEnding:
		return r.wrongEnding(e)
	case kindID:
		owner, err := r.owner(string(e.rest))
		if err != nil || owner != nil {
			return "", err
		}
		return "id without record", nil
	}
	if kind == kindWaiting && r.isVoid(e) {
		return "", nil
	}
	seq, err := number(e.rest)
	if err != nil {
		return "", err
	}
	rec, _, err := r.load("", seq, false)
	if err != nil {
		return "", err
	}
	if rec == nil {
		return missing[kind], nil
	}
	belongs := true
	switch kind {
	case kindState:
		belongs = rec.state != storage.Leased
	case kindLease:
		belongs = rec.state == storage.Leased
	case kindSuccessor:
		belongs = rec.successor
	case kindWaiting:
		p, err := parsePlace(e.rest)
		if err != nil {
			return "", err
		}
		belongs = rec.state == storage.Ready && p == rec.place() && int(e.rest[0]) == storage.MaxPriority-rec.priority
	case kindExpiry:
		p, err := parsePlace(e.rest)
		if err != nil {
			return "", err
		}
		belongs = rec.state == storage.Ready && rec.expireIn > 0 && p.at == rec.expires()
	case kindDead:
		p, err := parsePlace(e.rest)
		if err != nil {
			return "", err
		}
		belongs = rec.state == storage.Dead && p == rec.at()
	case kindFinished:
		id, err := parseFinished(e.rest)
		if err != nil {
			return "", err
		}
		belongs = rec.state == storage.Dead && id == rec.id
	}
	if belongs {
		return "", nil
	}
	return missing[kind], nil
}

// missing names an entry whose record is missing or is in another state.
var missing = map[byte]string{
	kindState:     "state without record",
	kindLease:     "lease without record",
	kindSuccessor: "successor without record",
	kindWaiting:   "place without record",
	kindExpiry:    "place without record",
	kindDead:      "place without record",
	kindFinished:  "id without record",
}

func (r *repair) isVoid(e entry) bool {
	p, err := parsePlace(e.rest)
	if err != nil || len(e.rest) != 17 || int(e.rest[0]) > storage.MaxPriority {
		return false
	}
	return p.less(r.waiting[storage.MaxPriority-int(e.rest[0])].low)
}

func (r *repair) wrongWindow(e entry) (string, error) {
	id := string(e.rest)
	end, err := number(e.value)
	if err != nil {
		return "", err
	}
	key := endingKey(r.name, id, end)
	has, err := r.has(key)
	if err != nil || has {
		return "", err
	}
	r.fix("dedup window without end", func() {
		r.t.set(key, nil)
		r.ending = bound{}
	})
	return "", nil
}

func (r *repair) wrongEnding(e entry) (string, error) {
	end, id, err := parseEnding(e.rest)
	if err != nil {
		return "", err
	}
	var want int64
	_, err = r.t.get(r.queue, id, idKey(kindWindow, r.name, id), func(value []byte) (err error) {
		want, err = number(value)
		return err
	})
	if err != nil || want == end {
		return "", err
	}
	owner, err := r.owner(id)
	if err != nil {
		return "", err
	}
	if want == 0 && owner == nil {
		r.fix("end without dedup window", func() {
			r.t.set(idKey(kindWindow, r.name, id), appendNumber(nil, end))
			r.t.touch(r.queue, id)
		})
		return "", nil
	}
	return "end without dedup window", nil
}
