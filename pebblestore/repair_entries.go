// SPDX-License-Identifier: Apache-2.0

package pebblestore

import (
	"github.com/bidemq/bide/storage"
)

// wrong says what is wrong with an entry that follows from a record, "" if nothing is.
func (r *repair) wrong(kind byte, e entry) (string, error) {
	switch kind {
	case kindWindow:
		return r.wrongWindow(e)
	case kindEnding:
		return r.wrongEnding(e)
	case kindGrant:
		n, err := number(e.rest)
		if err != nil || r.grants[n] != nil {
			return "", err
		}
		return "lease without record", nil
	case kindID:
		owner, err := r.owner(string(e.rest))
		if err != nil || owner != nil {
			return "", err
		}
		return "id without record", nil
	}
	switch kind {
	case kindTurn, kindSize, kindHead, kindIdle:
		return r.wrongKeyPlace(kind, e)
	case kindMember:
		return r.wrongMember(e)
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
	case kindSuccessor:
		belongs = rec.successor
	case kindWaiting, kindKeyed:
		p, err := parsePlace(e.rest)
		if err != nil {
			return "", err
		}
		belongs = rec.state == storage.Ready && (rec.key != "") == (kind == kindKeyed) && p == rec.place() && int(e.rest[0]) == storage.MaxPriority-rec.priority
	case kindExpiry:
		p, err := parsePlace(e.rest)
		if err != nil {
			return "", err
		}
		belongs = rec.state == storage.Ready && rec.expireIn > 0 && p.at == rec.expires()
	case kindDead, kindDone, kindUntold:
		p, err := parsePlace(e.rest)
		if err != nil {
			return "", err
		}
		belongs = rec.state == stateOf[kind] && p == rec.at() && (kind != kindUntold || rec.untold)
	case kindFinished:
		id, err := parseFinished(e.rest)
		if err != nil {
			return "", err
		}
		belongs = (rec.state == storage.Dead || rec.state == storage.Done) && id == rec.id
	}
	if belongs {
		return "", nil
	}
	return missing[kind], nil
}

// missing names an entry whose record is missing or is in another state.
var missing = map[byte]string{
	kindState:     "state without record",
	kindSuccessor: "successor without record",
	kindWaiting:   "place without record",
	kindExpiry:    "place without record",
	kindDead:      "place without record",
	kindDone:      "place without record",
	kindUntold:    "place without record",
	kindKeyed:     "place without record",
	kindFinished:  "id without record",
}

// stateOf is the state of the records that have a place of a kind.
var stateOf = map[byte]storage.State{kindDead: storage.Dead, kindUntold: storage.Dead, kindDone: storage.Done}

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
