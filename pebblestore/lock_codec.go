// SPDX-License-Identifier: Apache-2.0

package pebblestore

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/tidwall/btree"
)

// lock is one that somebody holds.
type lock struct {
	name  string
	owner string
	token int64
	until int64
}

// locks are all that somebody holds. They belong to the writer, and are the same on disk.
type locks struct {
	last   int64 // token
	clock  int64 // latest answer of the engine's own clock
	held   map[string]*lock
	ending *btree.BTreeG[*lock] // the same by end
}

func newLocks() *locks {
	return &locks{held: map[string]*lock{}, ending: btree.NewBTreeGOptions(func(a, b *lock) bool {
		return cmp.Or(cmp.Compare(a.until, b.until), cmp.Compare(a.name, b.name)) < 0
	}, btree.Options{NoLocks: true})}
}

// The keys of locks, see the package comment.
const (
	kindLock  = 'l'
	kindLocks = 'm'
)

func lockKey(name string) []byte { return append([]byte{kindLock}, name...) }

func locksKey() []byte { return []byte{kindLocks} }

func (l *locks) encode() []byte { return appendInt(appendInt([]byte{valueFormat}, l.last), l.clock) }

func (l *lock) encode() []byte {
	return appendString(appendInt(appendInt([]byte{valueFormat}, l.until), l.token), l.owner)
}

func (l *locks) decode(value []byte) error {
	d := read(value)
	l.last, l.clock = d.int(), d.int()
	return d.end()
}

func decodeLock(name string, value []byte) (*lock, error) {
	d := read(value)
	return &lock{name: name, until: d.int(), token: d.int(), owner: d.string()}, d.end()
}

// loadLocks reads the locks from the disk. No token is used twice, even if the last one is lost.
func (t *txn) loadLocks() (*locks, error) {
	l := newLocks()
	value, closer, err := t.store.db.Get(locksKey())
	switch {
	case err == nil:
		if err := errors.Join(l.decode(value), closer.Close()); err != nil {
			return nil, fmt.Errorf("tokens of locks: %w", err)
		}
	case !errors.Is(err, pebble.ErrNotFound):
		return nil, diskError(err)
	}
	return l, t.scan(lockKey(""), after(lockKey("")), func(it *pebble.Iterator) (bool, error) {
		held, err := decodeLock(string(it.Key()[1:]), it.Value())
		if err != nil {
			return false, fmt.Errorf("lock %q: %w", held.name, err)
		}
		l.last = max(l.last, held.token)
		l.held[held.name] = held
		l.ending.Set(held)
		return true, nil
	})
}
