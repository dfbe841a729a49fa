// SPDX-License-Identifier: Apache-2.0

package pebblestore

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/bidemq/bide/storage"
)

// txn gathers the writes of the operations of a group. Every transition of a record is whole in it:
// what a transition has to read it reads first, so that spill only happens between transitions, and
// an error never leaves half of one.
type txn struct {
	store   *Store
	batch   *pebble.Batch
	touched map[touched]struct{} // written in the batch, to be spilled before they are read
	changed []*queue             // to be written with the batch
	durable bool                 // somebody is told about what was written
	spilled bool
}

type touched struct {
	queue *queue
	id    string
}

func newTxn(s *Store) *txn {
	return &txn{store: s, batch: s.db.NewBatch(), touched: map[touched]struct{}{}}
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

func (t *txn) set(key, value []byte) { _ = t.batch.Set(key, value, nil) }

func (t *txn) del(key []byte) { _ = t.batch.Delete(key, nil) }

func (t *txn) delRange(start, end []byte) { _ = t.batch.DeleteRange(start, end, nil) }

// touch notes that keys of an id were written.
func (t *txn) touch(q *queue, id string) { t.touched[touched{q, id}] = struct{}{} }

// change notes that a queue has to be written, and whether somebody relies on it.
func (t *txn) change(q *queue, durable bool) {
	t.durable = t.durable || durable
	if !q.changed && q.exists {
		q.changed = true
		t.changed = append(t.changed, q)
	}
}

// finish puts the changed queues into the batch.
func (t *txn) finish() error {
	for _, q := range t.changed {
		q.changed = false
		t.set(appendPrefix(nil, kindQueue, q.name), q.encode())
	}
	t.changed = t.changed[:0]
	return nil
}

// spill applies what was written so far, so that it can be read. It is synced with the rest.
func (t *txn) spill() error {
	if t.batch.Empty() && len(t.changed) == 0 {
		return nil
	}
	last := t.changed
	if err := t.finish(); err != nil {
		return err
	}
	if err := t.store.apply(t.batch, false); err != nil {
		t.store.guard.fail(err)
		return diskError(err)
	}
	_ = t.batch.Close()
	t.batch = t.store.db.NewBatch()
	clear(t.touched)
	for _, q := range last { // something has to be synced after it
		t.change(q, false)
	}
	return nil
}

// get reads a key that belongs to an id and gives its value to use, which does not keep it. It says
// whether the key exists.
func (t *txn) get(q *queue, id string, key []byte, use func(value []byte) error) (bool, error) {
	if _, ok := t.touched[touched{q, id}]; ok {
		if err := t.spill(); err != nil {
			return false, err
		}
	}
	value, closer, err := t.store.db.Get(key)
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
func (t *txn) iter(start, end []byte) (*pebble.Iterator, error) {
	if err := t.spill(); err != nil {
		return nil, err
	}
	it, err := t.store.db.NewIter(&pebble.IterOptions{LowerBound: start, UpperBound: end})
	if err != nil {
		return nil, diskError(err)
	}
	return it, nil
}

// scan runs do on the keys from start to below end until it says false.
func (t *txn) scan(start, end []byte, do func(it *pebble.Iterator) (bool, error)) error {
	it, err := t.iter(start, end)
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
