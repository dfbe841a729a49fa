// SPDX-License-Identifier: Apache-2.0

package pebblestore

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/bidemq/bide/storage"
)

// repairOrder is the order in which Repair looks at the kinds of keys. Records come first: they say
// what has to be there. What leads to keys comes before the keys, which are made anew from their
// records, and leases are looked at again for keys of which nothing waits.
var repairOrder = [...]byte{
	kindRecord, kindState, kindGrant, kindSuccessor,
	kindWaiting, kindKeyed, kindExpiry, kindDead, kindDone, kindUntold, kindID, kindFinished, kindWindow, kindEnding,
	kindTurn, kindSize, kindHead, kindIdle, kindMember, leasedKeys, kindKey,
}

// leasedKeys is a second pass over the leases.
const leasedKeys = 'k'

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
	if pass < 0 || err != nil || len(from) > storage.MaxID+32 {
		return 0, nil, fmt.Errorf("%w: %q is no place to continue from", storage.ErrInvalid, cursor)
	}
	return pass, from, nil
}

func (r *repair) run(pass int, from []byte, limit int, out *storage.Repaired) error {
	r.flush()
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
		r.flush()
		out.Checked += len(entries)
		if out.Checked == limit {
			last := entries[len(entries)-1].rest
			if r.audit != nil {
				r.audit.pass, r.audit.from = pass, last
			}
			out.Next = string(kind) + hex.EncodeToString(last)
			return nil
		}
		if err := r.endPass(kind); err != nil {
			return err
		}
	}
	r.endAudit()
	return nil
}

// entries reads the next keys of a kind.
func (r *repair) entries(kind byte, from []byte, limit int) ([]entry, error) {
	if kind == leasedKeys {
		return r.leasedEntries(from, limit), nil
	}
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

// leasedEntries are the sequences of the next leased records.
func (r *repair) leasedEntries(from []byte, limit int) []entry {
	var seqs []int64
	for _, rec := range r.leases.byEnd {
		if rec.key != "" && (from == nil || bytes.Compare(appendNumber(nil, rec.seq), from) > 0) {
			seqs = append(seqs, rec.seq)
		}
	}
	slices.Sort(seqs)
	var found []entry
	for _, seq := range seqs[:min(limit, len(seqs))] {
		found = append(found, entry{rest: appendNumber(nil, seq)})
	}
	return found
}

// look compares one entry with the records.
func (r *repair) look(kind byte, e entry) error {
	switch kind {
	case kindRecord:
		return r.lookRecord(e)
	case leasedKeys:
		return r.lookLeasedKey(e)
	case kindKey:
		return r.lookKey(e)
	}
	wrong, err := r.wrong(kind, e)
	if err != nil || wrong == "" {
		return err
	}
	r.fix(wrong, func() {
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
		r.keyed[p], r.turns[p] = bound{}, bound{}
	}
	r.forgetAhead()
	r.strayed = true
	r.expiring, r.ending, r.done, r.dead = bound{}, bound{}, bound{}, bound{}
	r.due, r.idle = tide{}, 0
}
