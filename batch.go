// SPDX-License-Identifier: Apache-2.0

package bide

import (
	"context"
	"errors"
	"sync"
	"time"
)

// batcher sends items of the same lane together: what arrives while calls are under way goes with
// the next one, and nothing waits while none is. It has no goroutine while it has no work.
type batcher[T, R any] struct {
	ctx      context.Context // of every call; callers' contexts never end one
	call     func(ctx context.Context, lane string, values []T) ([]R, error)
	maxItems int // in a call
	maxBytes int // in a call of more than one item
	flights  int // calls under way at once in a lane

	mu     sync.Mutex
	lanes  map[string]*lane[T, R] // an entry exists exactly while the lane has items or calls
	closed bool
	empty  chan struct{} // closed when closed is set and no lane is left
}

type lane[T, R any] struct {
	waiting []*item[T, R] // in order of arrival
	flights int
}

type item[T, R any] struct {
	value     T
	size      int
	repeatFor time.Duration
	answer    chan answer[R] // gets one value

	// Guarded by batcher.mu.

	sent bool
	gone bool // the caller does not listen any more
}

type answer[R any] struct {
	value    R
	repeated bool // an earlier try of the call may have taken effect
	err      error
}

// unsureError is the error of a call that may have taken effect.
type unsureError struct{ error }

func (e unsureError) Unwrap() error { return e.error }

func newBatcher[T, R any](ctx context.Context, call func(context.Context, string, []T) ([]R, error), c ClientConfig) *batcher[T, R] {
	return &batcher[T, R]{
		ctx:      ctx,
		call:     call,
		maxItems: c.MaxBatch,
		maxBytes: c.MaxBatchBytes,
		flights:  c.Flights,
		lanes:    map[string]*lane[T, R]{},
		empty:    make(chan struct{}),
	}
}

// do sends a value with others and returns its answer. When ctx ends before the value was sent, it
// is not sent and the error is ctx's alone; afterwards it is an unsureError. A call that meets
// ErrUnavailable is repeated until repeatFor has passed.
func (b *batcher[T, R]) do(ctx context.Context, name string, value T, size int, repeatFor time.Duration) (answer[R], error) {
	if err := ctx.Err(); err != nil {
		return answer[R]{}, err
	}
	it := &item[T, R]{value: value, size: size, repeatFor: repeatFor, answer: make(chan answer[R], 1)}
	if err := b.add(name, it); err != nil {
		return answer[R]{}, err
	}
	select {
	case a := <-it.answer:
		return a, a.err
	case <-ctx.Done():
		return b.leave(ctx, it)
	}
}

func (b *batcher[T, R]) add(name string, it *item[T, R]) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return ErrClosed
	}
	l := b.lanes[name]
	if l == nil {
		l = &lane[T, R]{}
		b.lanes[name] = l
	}
	l.waiting = append(l.waiting, it)
	if l.flights < b.flights {
		l.flights++
		go b.fly(name, l)
	}
	return nil
}

func (b *batcher[T, R]) leave(ctx context.Context, it *item[T, R]) (answer[R], error) {
	b.mu.Lock()
	it.gone = true
	sent := it.sent
	b.mu.Unlock()
	select {
	case a := <-it.answer:
		return a, a.err
	default:
	}
	if sent {
		return answer[R]{}, unsureError{ctx.Err()}
	}
	return answer[R]{}, ctx.Err()
}

// fly makes calls until the lane has nothing waiting.
func (b *batcher[T, R]) fly(name string, l *lane[T, R]) {
	for {
		batch := b.take(name, l)
		if len(batch) == 0 {
			return
		}
		b.send(name, batch)
	}
}

// take removes the next batch from the lane, and the lane if that was its last flight.
func (b *batcher[T, R]) take(name string, l *lane[T, R]) []*item[T, R] {
	b.mu.Lock()
	defer b.mu.Unlock()
	var batch []*item[T, R]
	taken, bytes := 0, 0
	for _, it := range l.waiting {
		if len(batch) == b.maxItems || len(batch) > 0 && bytes+it.size > b.maxBytes {
			break
		}
		taken++
		if !it.gone {
			it.sent = true
			bytes += it.size
			batch = append(batch, it)
		}
	}
	if taken == len(l.waiting) {
		l.waiting = nil
	} else {
		l.waiting = l.waiting[taken:]
	}
	if len(batch) == 0 {
		l.flights--
		if l.flights == 0 {
			delete(b.lanes, name)
			b.checkEmpty()
		}
	}
	return batch
}

// send makes one call and answers its items, repeating the call for those who want that.
func (b *batcher[T, R]) send(name string, batch []*item[T, R]) {
	began := time.Now()
	for tries := 1; ; tries++ {
		values := make([]T, len(batch))
		for i, it := range batch {
			values[i] = it.value
		}
		results, err := b.call(b.ctx, name, values)
		switch {
		case err == nil:
			for i, it := range batch {
				it.answer <- answer[R]{value: results[i], repeated: tries > 1}
			}
			return
		case errors.Is(err, ErrInvalid) && tries == 1:
			refuse(batch, err)
			return
		case !errors.Is(err, ErrUnavailable):
			refuse(batch, unsureError{err})
			return
		}
		batch = b.patient(batch, err, time.Since(began))
		if len(batch) == 0 {
			return
		}
		if err := sleep(b.ctx, repeatAfter(tries)); err != nil {
			refuse(batch, unsureError{err})
			return
		}
	}
}

// patient returns those items whose callers wait for another try, and answers the others.
func (b *batcher[T, R]) patient(batch []*item[T, R], err error, waited time.Duration) []*item[T, R] {
	b.mu.Lock()
	defer b.mu.Unlock()
	var stay []*item[T, R]
	for _, it := range batch {
		switch {
		case it.gone:
		case waited >= it.repeatFor:
			it.answer <- answer[R]{err: unsureError{err}}
		default:
			stay = append(stay, it)
		}
	}
	return stay
}

func refuse[T, R any](batch []*item[T, R], err error) {
	for _, it := range batch {
		it.answer <- answer[R]{err: err}
	}
}

func (b *batcher[T, R]) isClosed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed
}

// close lets nothing in any more and waits for what is under way, or for the end of ctx.
func (b *batcher[T, R]) close(ctx context.Context) error {
	b.mu.Lock()
	if !b.closed {
		b.closed = true
		b.checkEmpty()
	}
	b.mu.Unlock()
	select {
	case <-b.empty:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (b *batcher[T, R]) checkEmpty() {
	if b.closed && len(b.lanes) == 0 {
		select {
		case <-b.empty:
		default:
			close(b.empty)
		}
	}
}

// sleep waits for d or the end of ctx, whose error it returns.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
