// SPDX-License-Identifier: Apache-2.0

package pebblestore

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/bidemq/bide/storage"
)

// repairOrder is the order in which Repair looks at the kinds of keys. Records come first: they say
// what has to be there.
var repairOrder = [...]byte{
	kindRecord, kindState, kindLease, kindSuccessor,
	kindWaiting, kindExpiry, kindDead, kindID, kindFinished, kindWindow, kindEnding,
}

// repair is one step of mending.
type repair struct {
	*call
	dry   bool
	fixes map[string]int
}

// entry is a key without its prefix, and its value.
type entry struct{ rest, value []byte }

// Repair implements [storage.Admin]. R14
func (s *Store) Repair(ctx context.Context, now time.Time, queue string, r storage.Repair) (storage.Repaired, error) {
	pass, from, err := parseCursor(r.After)
	if err = check(r.Check(), err); err != nil {
		return storage.Repaired{}, wrap("repair", queue, err)
	}
	var out storage.Repaired
	err = s.on(ctx, "repair", queue, now, func(c *call) error {
		step := repair{c, r.DryRun, map[string]int{}}
		if err := step.run(pass, from, r.Limit, &out); err != nil {
			return err
		}
		for _, what := range slices.Sorted(maps.Keys(step.fixes)) {
			out.Fixes = append(out.Fixes, storage.Fix{What: what, Count: step.fixes[what]})
		}
		return nil
	})
	if err != nil {
		return storage.Repaired{}, err
	}
	return out, nil
}

// A cursor is the kind and the rest of the key that was looked at last.

func parseCursor(cursor string) (pass int, from []byte, err error) {
	if cursor == "" {
		return 0, nil, nil
	}
	pass = bytes.IndexByte(repairOrder[:], cursor[0])
	from, err = hex.DecodeString(cursor[1:])
	if pass < 0 || err != nil || len(from) > storage.MaxID+16 {
		return 0, nil, fmt.Errorf("%w: %q is no place to continue from", storage.ErrInvalid, cursor)
	}
	return pass, from, nil
}

func (r *repair) run(pass int, from []byte, limit int, out *storage.Repaired) error {
	r.beginAudit(pass, from)
	for ; pass < len(repairOrder); pass, from = pass+1, nil {
		kind := repairOrder[pass]
		entries, err := r.entries(kind, from, limit-out.Checked)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if err := r.look(kind, e); err != nil {
				return err
			}
		}
		out.Checked += len(entries)
		if out.Checked == limit {
			out.Next = string(kind) + hex.EncodeToString(entries[len(entries)-1].rest)
			return nil
		}
		if kind == kindRecord && r.audit != nil {
			r.audit.seq = math.MaxInt64
		}
	}
	r.endAudit()
	return nil
}

// entries reads the next keys of a kind.
func (r *repair) entries(kind byte, from []byte, limit int) ([]entry, error) {
	all := prefix(kind, r.name)
	start := all
	if from != nil {
		start = append(append(slices.Clone(all), from...), 0)
	}
	var found []entry
	err := r.t.scan(start, after(all), func(it *pebble.Iterator) (bool, error) {
		found = append(found, entry{bytes.Clone(it.Key()[len(all):]), bytes.Clone(it.Value())})
		return len(found) < limit, nil
	})
	return found, err
}

// look compares one entry with the records.
func (r *repair) look(kind byte, e entry) error {
	if kind == kindRecord {
		return r.lookRecord(e)
	}
	wrong, err := r.wrong(kind, e)
	if err != nil || wrong == "" {
		return err
	}
	r.fix(wrong, func() {
		if kind == kindEnding || kind == kindWindow {
			r.ending = bound{}
		}
		r.t.del(append(prefix(kind, r.name), e.rest...))
		r.reset()
	})
	return nil
}

// fix notes damage and mends it unless it is a dry run.
func (r *repair) fix(what string, mend func()) {
	r.fixes[what]++
	if !r.dry {
		r.mark()
		mend()
	}
}

// reset forgets what follows from the places on disk.
func (r *repair) reset() {
	for p := range r.waiting {
		r.waiting[p].exact = false
	}
	r.expiring = bound{}
	r.due = tide{}
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
	if r.audit != nil && r.audit.seq != seq {
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
	if r.count != a.count {
		r.fix("wrong count", func() {
			r.count = a.count
			r.reset()
		})
	}
	var stored int64
	for _, n := range a.count {
		stored += n
	}
	t := &r.total
	if missing := stored - (t.Enqueued - t.Replaced - t.Acked - t.Expired - t.Canceled - t.Purged); missing != 0 {
		r.fix("counters that do not add up to the records", func() { t.Enqueued += missing })
	}
}
