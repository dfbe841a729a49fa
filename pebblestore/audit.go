// SPDX-License-Identifier: Apache-2.0

package pebblestore

import (
	"bytes"
	"math"

	"github.com/bidemq/bide/storage"
)

// audit counts the records of a queue anew while traffic runs: Repair walks them by sequence, and
// the changes behind it are noted as they happen.
type audit struct {
	pass int    // that goes on
	from []byte // behind this key

	seq      int64 // of the last record counted
	count    [storage.Done + 1]int64
	retained int64

	crowd   bool   // members of a key are being counted
	member  string // the key
	last    place  // of the last member counted
	members int64

	keyed bool   // keys are being counted
	key   string // the last one counted
	keys  int64

	unplaced bool // a record has no place in its key, and was not given one
}

func (a *audit) note(r *record, s storage.State, by int64) {
	if r.seq > a.seq {
		return
	}
	a.count[s] += by
	if s == storage.Done {
		a.retained += by * r.size
	}
}

// see counts the next record in the order of sequences.
func (a *audit) see(r *record) {
	a.seq = r.seq
	a.note(r, r.state, 1)
}

// noteKey is note for a key that begins or ends.
func (a *audit) noteKey(key string, by int64) {
	if a.keyed && key <= a.key {
		a.keys += by
	}
}

// noteMember is note for a record that joins or leaves those that wait in a key.
func (a *audit) noteMember(key string, p place, by int64) {
	if a.crowd && key == a.member && !a.last.less(p) {
		a.members += by
	}
}

// endPass ends what is counted in one pass.
func (r *repair) endPass(kind byte) error {
	if r.audit == nil {
		return nil
	}
	switch kind {
	case kindRecord:
		r.audit.seq = math.MaxInt64
	case kindMember:
		return r.endMembers()
	}
	return nil
}

// beginAudit starts to count at the first record, and stops if this step does not go on from the
// last one.
func (r *repair) beginAudit(pass int, from []byte) {
	if pass == 0 && from == nil {
		r.audit = &audit{}
		return
	}
	seq := int64(math.MaxInt64)
	if pass == 0 {
		seq, _ = number(append(make([]byte, 8), from...))
	}
	if r.audit != nil && (r.audit.seq != seq || r.audit.pass != pass || !bytes.Equal(r.audit.from, from)) {
		r.audit = nil
	}
}

// endAudit compares the counts with what was counted.
func (r *repair) endAudit() {
	a := r.audit
	r.audit = nil
	if a == nil {
		return
	}
	if r.count != a.count || r.retained != a.retained || r.keys != a.keys {
		r.fix("wrong count", func() {
			r.count, r.retained, r.keys = a.count, a.retained, a.keys
			r.reset()
		})
	}
	var stored int64
	for _, n := range a.count {
		stored += n
	}
	t := &r.total
	if missing := stored - (t.Enqueued - t.Replaced - t.Acked - t.Expired - t.Canceled - t.Purged - t.Dropped + t.Retained - t.Trimmed); missing != 0 {
		r.fix("counters that do not add up to the records", func() { t.Enqueued += missing })
	}
}
