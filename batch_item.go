// SPDX-License-Identifier: Apache-2.0

package bide

import (
	"context"
	"time"
)

// item is a value on its way and whom to answer. Items are used again, with their channels, once the
// answer was taken: one whose caller has left is not.
type item[T, R any] struct {
	content[T, R]
	answer chan answer[R] // gets one value, unless there is a done

	// Guarded by batcher.mu.

	sent bool
	gone bool // the caller does not listen any more
}

// content is what an item is made of for each use.
type content[T, R any] struct {
	value T
	size  int
	terms
	since time.Time       // when it came
	done  func(answer[R]) // is called once, from the goroutine of a call
	ctx   context.Context // with done: not sent once this has ended
}

// terms of an item.
type terms struct {
	repeatFor time.Duration // from its coming on, while the engine is unavailable; also if it was not sent yet
	within    time.Duration // a call with the item is cut off after this
}

type answer[R any] struct {
	value    R
	repeated bool // an earlier try of the call may have taken effect
	err      error
}

func (b *batcher[T, R]) item(c content[T, R]) *item[T, R] {
	it, ok := b.answered.Get().(*item[T, R])
	if !ok {
		it = &item[T, R]{answer: make(chan answer[R], 1)}
	}
	it.content, it.sent = c, false
	return it
}

// recycle takes back an item that nobody else knows any more: it has been answered, and the answer was
// taken.
func (b *batcher[T, R]) recycle(it *item[T, R]) {
	it.content = content[T, R]{}
	b.answered.Put(it)
}

// reply gives an item its answer; it may be another one from then on. It is not called with batcher.mu
// held: done may be anybody's.
func (b *batcher[T, R]) reply(it *item[T, R], a answer[R]) {
	if done := it.done; done != nil {
		b.recycle(it)
		done(a)
		return
	}
	it.answer <- a
}

// flight is one call after the other, in the same memory.
type flight[T, R any] struct {
	batch  []*item[T, R]
	values []T // of the batch
}

func (f *flight[T, R]) reset() {
	clear(f.values)
	f.values = f.values[:0]
}
