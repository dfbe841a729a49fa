// SPDX-License-Identifier: Apache-2.0

package system

import (
	"encoding/binary"
	"sync"

	"github.com/cockroachdb/pebble/v2"
)

// bareGroup bounds what is committed together, in bytes.
const bareGroup = 4 << 20

// bareWriter commits what many ask for together: while one group is being synced the next is built.
type bareWriter struct {
	db      *pebble.DB
	relaxed bool
	asked   chan bareChange
	written chan bareCommit
	loops   sync.WaitGroup
}

// bareChange is something to write, for somebody who waits.
type bareChange struct {
	write  func(*pebble.Batch) error
	after  func() // called once it can be read, nil is nothing
	answer chan error
}

// bareCommit was applied and is not answered yet.
type bareCommit struct {
	batch   *pebble.Batch
	changes []bareChange
	err     error
}

func newBareWriter(db *pebble.DB, relaxed bool) *bareWriter {
	w := &bareWriter{db: db, relaxed: relaxed, asked: make(chan bareChange, 1024), written: make(chan bareCommit, 1)}
	w.loops.Go(w.commit)
	w.loops.Go(w.answer)
	return w
}

// do writes something and waits for it.
func (w *bareWriter) do(write func(*pebble.Batch) error) error { return w.change(write, nil) }

func (w *bareWriter) change(write func(*pebble.Batch) error, after func()) error {
	c := bareChange{write, after, make(chan error, 1)}
	w.asked <- c
	return <-c.answer
}

// commit applies changes, as many as are there at a time, until nobody asks any more.
func (w *bareWriter) commit() {
	defer close(w.written)
	for c := range w.asked {
		g := bareCommit{batch: w.db.NewBatch(), changes: []bareChange{c}}
		g.err = c.write(g.batch)
	more:
		for g.batch.Len() < bareGroup && g.err == nil {
			select {
			case c, ok := <-w.asked:
				if !ok {
					break more
				}
				g.changes = append(g.changes, c)
				g.err = c.write(g.batch)
			default:
				break more
			}
		}
		if g.err == nil {
			g.err = w.apply(g.batch)
		}
		for _, c := range g.changes {
			if c.after != nil && g.err == nil {
				c.after()
			}
		}
		w.written <- g
	}
}

func (w *bareWriter) apply(b *pebble.Batch) error {
	if w.relaxed {
		return w.db.Apply(b, pebble.NoSync)
	}
	return w.db.ApplyNoSyncWait(b, pebble.Sync)
}

// answer waits for the disk and tells who waits.
func (w *bareWriter) answer() {
	for g := range w.written {
		if g.err == nil && !w.relaxed {
			g.err = g.batch.SyncWait()
		}
		for _, c := range g.changes {
			c.answer <- g.err
		}
		_ = g.batch.Close() // it only gives memory back
	}
}

// Close ends the writer. Nobody may ask any more.
func (w *bareWriter) Close() error {
	close(w.asked)
	w.loops.Wait()
	return w.db.Close()
}

// Kinds of entries.
const (
	kindReady byte = iota + 1
	kindDelayed
	kindLease
)

// key of an entry of a message; only delayed ones have a due time in it.
func (q *bareQueue) key(kind byte, due int64, id uint64) []byte {
	k := append(make([]byte, 0, 18), q.number, kind)
	if kind == kindDelayed {
		k = binary.BigEndian.AppendUint64(k, uint64(due))
	}
	return binary.BigEndian.AppendUint64(k, id)
}

// enqueue stores messages.
func (w *bareWriter) enqueue(q *bareQueue, ms []Message) error {
	ready := uint64(0)
	return w.change(func(b *pebble.Batch) error {
		for _, m := range ms {
			key := q.key(kindReady, 0, q.last+1)
			if m.Due.IsZero() {
				q.last++
				ready = q.last
			} else {
				q.delayed++
				key = q.key(kindDelayed, m.Due.UnixMilli(), q.delayed)
			}
			if err := b.Set(key, m.Body, nil); err != nil {
				return err
			}
		}
		return nil
	}, func() {
		if ready > 0 {
			q.written.Store(ready)
		}
	})
}

// take reserves the next messages that can be read, from the first up to but without the end.
func (q *bareQueue) take(limit uint64) (first, end uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	first = q.taken + 1
	q.taken = min(q.taken+limit, q.written.Load())
	return first, q.taken + 1
}

func (q *bareQueue) lease(b *pebble.Batch, first, end uint64, until int64) error {
	value := binary.BigEndian.AppendUint64(nil, uint64(until))
	for id := first; id < end; id++ {
		if err := b.Set(q.key(kindLease, 0, id), value, nil); err != nil {
			return err
		}
	}
	return nil
}

func (q *bareQueue) ack(b *pebble.Batch, first, end uint64) error {
	for id := first; id < end; id++ {
		if err := b.SingleDelete(q.key(kindReady, 0, id), nil); err != nil {
			return err
		}
		if err := b.SingleDelete(q.key(kindLease, 0, id), nil); err != nil {
			return err
		}
	}
	return nil
}
