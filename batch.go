// SPDX-License-Identifier: Apache-2.0

package bide

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"time"
)

// batcher sends items of the same lane together: what arrives while calls are under way goes with
// the next one, and nothing waits while none is. It has no goroutine while it has no work.
type batcher[T, R any] struct {
	ctx      context.Context // of every call; callers' contexts never end one
	call     func(ctx context.Context, within time.Duration, lane string, values []T) ([]R, error)
	maxItems int // in a call
	maxBytes int // in a call of more than one item
	flights  int // calls under way at once in a lane

	answered sync.Pool // of *item[T, R], to be used again
	landed   sync.Pool // of *flight[T, R], the same

	mu      sync.Mutex
	lanes   map[string]*lane[T, R] // an entry exists exactly while the lane has items or calls
	callers int                    // that make their calls themselves
	closed  bool
	empty   chan struct{} // closed when closed is set and neither a lane nor such a caller is left
}

type lane[T, R any] struct {
	waiting []*item[T, R] // in order of arrival
	flights int
	sent    time.Time // when the latest flight began
}

// A second call is begun while one is under way if so many items wait, or if that one is so old:
// fuller calls cost less, and overlapping ones are for engines that are far away.
const (
	crowd      = 8
	longFlight = time.Millisecond
)

// unsureError is the error of a call that may have taken effect.
type unsureError struct{ error }

func (e unsureError) Unwrap() error { return e.error }

func newBatcher[T, R any](
	ctx context.Context,
	call func(context.Context, time.Duration, string, []T) ([]R, error),
	c ClientConfig,
) *batcher[T, R] {
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
// ErrUnavailable is repeated until the item's patience is over; if it was not sent until then, the
// error is ErrUnavailable alone.
func (b *batcher[T, R]) do(ctx context.Context, name string, value T, size int, t terms) (answer[R], error) {
	if err := ctx.Err(); err != nil {
		return answer[R]{}, err
	}
	it := b.item(content[T, R]{value: value, size: size, terms: t, since: time.Now()})
	if err := b.add(name, it); err != nil {
		return answer[R]{}, err
	}
	select {
	case a := <-it.answer:
		b.recycle(it)
		return a, a.err
	case <-ctx.Done():
		return b.leave(ctx, it)
	}
}

// submit is do for a caller that does not wait: done is called with the answer, from a goroutine that
// has others to answer too. When ctx ends, what was not sent by then is not, and its error is ctx's;
// done may then be called as late as the call that is under way ends.
func (b *batcher[T, R]) submit(ctx context.Context, name string, value T, t terms, done func(answer[R])) {
	it := b.item(content[T, R]{value: value, terms: t, since: time.Now(), done: done, ctx: ctx})
	if err := b.add(name, it); err != nil {
		done(answer[R]{err: err})
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
	if l.flights == 0 || l.flights < b.flights && (len(l.waiting) >= crowd || it.since.Sub(l.sent) >= longFlight) {
		l.flights++
		l.sent = it.since
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
	runtime.Gosched() // those who were claimed, or answered, together have more to send
	f, ok := b.landed.Get().(*flight[T, R])
	if !ok {
		f = &flight[T, R]{}
	}
	for b.take(name, l, f) {
		b.send(name, l, f)
		clear(f.batch)
		f.reset()
		runtime.Gosched()
	}
	b.landed.Put(f)
}

// take fills a flight with the next batch of the lane. It says whether there is one, and removes the lane
// if not and that was its last flight.
func (b *batcher[T, R]) take(name string, l *lane[T, R], f *flight[T, R]) bool {
	batch, left := b.next(name, l, f.batch[:0])
	f.batch = batch
	for _, it := range left {
		b.reply(it, answer[R]{err: it.ctx.Err()})
	}
	if len(batch) == 0 && len(left) > 0 {
		return b.take(name, l, f)
	}
	return len(batch) > 0
}

// next is take without the answers for those whose context has ended.
func (b *batcher[T, R]) next(name string, l *lane[T, R], batch []*item[T, R]) (_, left []*item[T, R]) {
	b.mu.Lock()
	defer b.mu.Unlock()
	batch = slices.Grow(batch, min(len(l.waiting), b.maxItems))
	taken, bytes := 0, 0
	for _, it := range l.waiting {
		if len(batch) == b.maxItems || len(batch) > 0 && bytes+it.size > b.maxBytes {
			break
		}
		taken++
		if it.ctx != nil && it.ctx.Err() != nil {
			left = append(left, it)
		} else if !it.gone {
			it.sent = true
			bytes += it.size
			batch = append(batch, it)
		}
	}
	l.sent = time.Now()
	l.waiting = slices.Delete(l.waiting, 0, taken)
	if len(batch) == 0 && len(left) == 0 {
		l.flights--
		if l.flights == 0 {
			delete(b.lanes, name)
			b.checkEmpty()
		}
	}
	return batch, left
}

// send makes one call and answers its items, repeating the call for those who want that.
func (b *batcher[T, R]) send(name string, l *lane[T, R], f *flight[T, R]) {
	batch := f.batch
	for tries := 1; ; tries++ {
		within := batch[0].within
		f.reset()
		f.values = slices.Grow(f.values, len(batch))
		for _, it := range batch {
			f.values = append(f.values, it.value)
			within = min(within, it.within)
		}
		results, err := b.call(b.ctx, within, name, f.values)
		switch {
		case err == nil:
			for i, it := range batch {
				b.reply(it, answer[R]{value: results[i], repeated: tries > 1})
			}
			return
		case errors.Is(err, ErrInvalid) && tries == 1:
			b.refuse(batch, err)
			return
		case !errors.Is(err, ErrUnavailable):
			b.refuse(batch, unsureError{err})
			return
		}
		var left time.Duration
		batch, left = b.patient(l, batch, err)
		if len(batch) == 0 {
			return
		}
		if err := sleep(b.ctx, min(left, repeatAfter(tries))); err != nil {
			b.refuse(batch, unsureError{err})
			return
		}
	}
}

// patient returns those items of a batch whose callers wait for another try, and for how long at
// most. It answers the others, also those that wait in the lane: nothing is tried for them
// meanwhile.
func (b *batcher[T, R]) patient(
	l *lane[T, R],
	batch []*item[T, R],
	err error,
) (stay []*item[T, R], left time.Duration) {
	now := time.Now()
	var unsent, unsure []*item[T, R]
	b.mu.Lock()
	l.waiting = slices.DeleteFunc(l.waiting, func(it *item[T, R]) bool { return it.tire(now, &unsent) })
	stay = slices.DeleteFunc(batch, func(it *item[T, R]) bool { return it.tire(now, &unsure) })
	b.mu.Unlock()
	b.refuse(unsent, err)
	b.refuse(unsure, unsureError{err})
	for _, it := range stay {
		left = max(left, it.repeatFor-now.Sub(it.since))
	}
	return stay, left
}

// tire says whether nobody waits for an item any more, and adds it to the tired if its patience is
// over. The caller holds batcher.mu.
func (it *item[T, R]) tire(now time.Time, tired *[]*item[T, R]) bool {
	if it.gone {
		return true
	}
	if now.Sub(it.since) < it.repeatFor && (it.ctx == nil || it.ctx.Err() == nil) {
		return false
	}
	*tired = append(*tired, it)
	return true
}

func (b *batcher[T, R]) refuse(batch []*item[T, R], err error) {
	for _, it := range batch {
		b.reply(it, answer[R]{err: err})
	}
}

// enter lets in a caller that makes its calls itself, for close to wait for. It says whether it
// may.
func (b *batcher[T, R]) enter() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		b.callers++
	}
	return !b.closed
}

// exit ends what enter has begun.
func (b *batcher[T, R]) exit() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.callers--
	b.checkEmpty()
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
	if b.closed && len(b.lanes) == 0 && b.callers == 0 {
		select {
		case <-b.empty:
		default:
			close(b.empty)
		}
	}
}
