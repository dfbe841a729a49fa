// SPDX-License-Identifier: Apache-2.0

package pebblestore

import (
	"errors"
	"fmt"
	"hash/maphash"

	"github.com/cockroachdb/pebble/v2"

	"github.com/bidemq/bide/storage"
)

// txn gathers the writes of the operations of a group in one batch, which takes effect as a whole.
// Every transition of a record reads first what it has to read, so that an error never leaves half
// of one. The writer uses one txn again and again.
type txn struct {
	store   *Store
	lanes   [lanes]*pebble.Batch // writes by kind of key, nil if there are none
	all     *pebble.Batch        // all writes, readable; nil until one of them has to be read
	touched marks                // ids of which keys were written, to be read there
	changed []*queue             // to be written with the batch
	durable bool                 // somebody is told about what was written
	flushed bool                 // the batch has what changed about keys
}

func newTxn(s *Store) *txn { return &txn{store: s, touched: marks{seed: maphash.MakeSeed()}} }

// begin makes a txn that was committed usable again.
func (t *txn) begin() {
	t.touched.clear()
	t.durable, t.flushed = false, false
}

// Keys of one kind are written next to each other, because a memtable takes neighbors several times
// faster than keys of many kinds in turn. All writes of a key are in one lane, in order.
const (
	laneRecord = iota
	lanePlace
	laneID
	laneRest
	lanes
)

func laneOf(kind byte) int {
	switch kind {
	case kindRecord:
		return laneRecord
	case kindWaiting:
		return lanePlace
	case kindID:
		return laneID
	default:
		return laneRest
	}
}

// to is the batch that a write to a key goes to.
func (t *txn) to(key []byte) *pebble.Batch {
	if t.all != nil {
		return t.all
	}
	l := &t.lanes[laneOf(key[0])]
	if *l == nil {
		*l = t.store.db.NewBatch()
	}
	return *l
}

// size is how much was written, in bytes.
func (t *txn) size() int {
	if t.all != nil {
		return t.all.Len()
	}
	n := 0
	for _, l := range t.lanes {
		if l != nil {
			n += l.Len()
		}
	}
	return n
}

// take returns the batch of all writes, nil if there are none.
func (t *txn) take() (*pebble.Batch, error) {
	if t.all != nil {
		b := t.all
		t.all = nil
		return b, nil
	}
	var b *pebble.Batch
	var errs []error
	for i, l := range t.lanes {
		t.lanes[i] = nil
		switch {
		case l == nil:
		case b == nil:
			b = l
		default:
			errs = append(errs, b.Apply(l, nil), l.Close())
		}
	}
	return b, errors.Join(errs...)
}

// run runs one operation. A damaged database makes Pebble panic.
func (t *txn) run(do func(*txn) error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", storage.ErrUnavailable, r)
			t.store.guard.fail(err) // nobody knows what is in the batch
		}
	}()
	return do(t)
}

// The errors of a batch in memory come up when it is applied.

func (t *txn) set(key, value []byte) { _ = t.to(key).Set(key, value, nil) }

func (t *txn) del(key []byte) { _ = t.to(key).Delete(key, nil) }

func (t *txn) delRange(start, end []byte) { _ = t.to(start).DeleteRange(start, end, nil) }

// touch notes that keys of an id were written.
func (t *txn) touch(q *queue, id string) { t.touched.add(q.salt, id) }

// change notes that a queue has to be written, and whether somebody relies on it.
func (t *txn) change(q *queue, durable bool) {
	t.durable = t.durable || durable
	if !q.changed && q.exists {
		q.changed = true
		t.changed = append(t.changed, q)
	}
}

// finish puts the changed queues into the batch.
func (t *txn) finish() {
	for _, q := range t.changed {
		q.changed, q.strayed = false, false
		if len(q.changedGroups) > 0 {
			(&call{queue: q, t: t}).flush()
		}
		q.forgetGroups()
		t.set(prefix(kindQueue, q.name), q.encode())
	}
	t.changed = t.changed[:0]
}

// index makes the writes readable, which they are not from the beginning because it costs time.
func (t *txn) index() error {
	if t.all != nil {
		return nil
	}
	all := t.store.db.NewIndexedBatch()
	for i, l := range t.lanes {
		if l == nil {
			continue
		}
		if err := all.Apply(l, nil); err != nil {
			return diskError(errors.Join(err, all.Close()))
		}
		t.lanes[i] = nil
		_ = l.Close()
	}
	t.all = all
	return nil
}

// get reads a key that belongs to an id and gives its value to use, which does not keep it. It says
// whether the key exists. The id is "" where it is not known.
func (t *txn) get(q *queue, id string, key []byte, use func(value []byte) error) (bool, error) {
	from, err := t.reader(id == "" || t.touched.has(q.salt, id))
	if err != nil {
		return false, err
	}
	return getFrom(from, key, use)
}

// getGrouped is get for the keys that are written when the groups of a queue are flushed.
func (t *txn) getGrouped(key []byte, use func(value []byte) error) (bool, error) {
	from, err := t.reader(t.flushed)
	if err != nil {
		return false, err
	}
	return getFrom(from, key, use)
}

// reader is what a read goes to, which has the writes of the batch or need not have them.
func (t *txn) reader(written bool) (pebble.Reader, error) {
	if !written || t.size() == 0 {
		return t.store.db, nil
	}
	if err := t.index(); err != nil {
		return nil, err
	}
	return t.all, nil
}

func getFrom(from pebble.Reader, key []byte, use func(value []byte) error) (bool, error) {
	value, closer, err := from.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, diskError(err)
	}
	defer func() { _ = closer.Close() }()
	return true, use(value)
}

// iter returns an iterator over the keys from start to below end, with all writes so far.
func (t *txn) iter(start, end []byte) (*pebble.Iterator, error) { return t.iterFrom(true, start, end) }

// iterFrom is iter over what was on disk before the transaction, unless that was written since.
func (t *txn) iterFrom(written bool, start, end []byte) (*pebble.Iterator, error) {
	from, err := t.reader(written)
	if err != nil {
		return nil, err
	}
	it, err := from.NewIter(&pebble.IterOptions{LowerBound: start, UpperBound: end})
	if err != nil {
		return nil, diskError(err)
	}
	return it, nil
}

// scan runs do on the keys from start to below end until it says false.
func (t *txn) scan(start, end []byte, do func(it *pebble.Iterator) (bool, error)) error {
	return t.scanFrom(true, start, end, do)
}

// scanOf is scan over keys that belong to an id.
func (t *txn) scanOf(q *queue, id string, start, end []byte, do func(it *pebble.Iterator) (bool, error)) error {
	return t.scanFrom(t.touched.has(q.salt, id), start, end, do)
}

// scanGrouped is scan over keys that are written when the groups of a queue are flushed.
func (t *txn) scanGrouped(start, end []byte, do func(it *pebble.Iterator) (bool, error)) error {
	return t.scanFrom(t.flushed, start, end, do)
}

func (t *txn) scanFrom(written bool, start, end []byte, do func(it *pebble.Iterator) (bool, error)) error {
	it, err := t.iterFrom(written, start, end)
	if err != nil {
		return err
	}
	for ok := it.First(); ok; ok = it.Next() {
		more, err := do(it)
		if err != nil {
			return errors.Join(err, it.Close())
		}
		if !more {
			break
		}
	}
	return diskError(errors.Join(it.Error(), it.Close()))
}
