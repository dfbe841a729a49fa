// SPDX-License-Identifier: Apache-2.0

package bide

import (
	"context"
	"errors"
	"runtime/debug"
	"slices"
	"time"

	"github.com/bidemq/bide/storage"
)

// unit is what one handler has: a message, or a batch of them.
type unit struct {
	source   *source
	holds    []*hold
	ctx      context.Context // of the handler: handling, with what the configuration adds
	handling handling
	claimed  time.Time // when the claim was answered

	// Guarded by run.mu.

	began time.Time // when a handler was given it
	stuck bool      // the handler has been given up
	over  bool      // the handler has returned
}

// work handles a unit, and those that were claimed ahead, in one goroutine. A handler may end that.
func (r *run) work(u *unit) {
	for u != nil {
		u = r.handle(u)
	}
}

// handle runs the handler of what was claimed and settles it. It returns what the goroutine is to
// handle next.
func (r *run) handle(u *unit) (next *unit) {
	u.handling.parent, u.ctx = r.handlers, &u.handling
	if r.config.Timeout > 0 {
		var stop context.CancelFunc
		u.ctx, stop = context.WithTimeoutCause(u.ctx, r.config.Timeout, ErrTimeout)
		defer stop()
	}
	defer u.handling.end(nil)
	start := time.Now()
	fit := 0
	for _, h := range u.holds {
		h.unit = u
		if h.end, h.unfit = r.unfit(h, start); !h.unfit {
			fit++
		}
	}
	if fit == 0 {
		return r.finish(u, start, 0)
	}
	first := u.holds[0]
	for _, h := range slices.Backward(u.holds) {
		if !h.unfit {
			first = h
		}
		r.keeper.add(h) // also what is unfit: it is settled with the others, in its order
	}
	if r.config.Hooks.OnStart != nil {
		for _, h := range u.holds {
			if !h.unfit {
				r.config.Hooks.OnStart(u.ctx, h.Delivery)
			}
		}
	}
	handlerCtx := u.ctx
	if u.source.batch != nil {
		handlerCtx = context.WithValue(u.ctx, batchOf{}, u)
	}
	guard(handlerCtx, u.source.handler, first.Delivery, func(err error) {
		end := time.Now()
		for _, h := range u.holds {
			if !h.unfit {
				h.end, h.done.Err = r.outcome(h, h.decision(err))
			}
		}
		next = r.finish(u, end, end.Sub(start))
		if errors.Is(err, ErrGoexit) && next != nil { // the goroutine is at its end
			go r.work(next)
			next = nil
		}
	})
	return next
}

// unfit says how a message ends whose handler is not to begin. The process may have stood still
// since the claim.
func (r *run) unfit(h *hold, now time.Time) (storage.Settlement, bool) {
	expires := h.Record().Expires() // by the engine's clock, as Claimed is
	switch {
	case !expires.IsZero() && now.Sub(h.unit.claimed) >= expires.Sub(h.Claimed):
		return storage.Settlement{Verdict: storage.Expire}, true // R13
	case r.ctx.Err() != nil || !r.keeper.safe(h, now):
		return storage.Settlement{Verdict: storage.Return}, true
	}
	return storage.Settlement{}, false
}

// outcome says how a delivery ends whose handler returned err, and with what error. Errors and
// backoffs are the user's: where one panics, the attempt has failed with that.
func (r *run) outcome(h *hold, err error) (s storage.Settlement, why error) {
	defer func() {
		if v := recover(); v != nil {
			why = &PanicError{Value: v, Stack: debug.Stack()}
			s = settlement(why, h.Attempt, defaultBackoff())
		}
	}()
	s = settlement(err, h.Attempt, r.config.Backoff)
	if interrupted(err) && errors.Is(context.Cause(h.unit.ctx), ErrShutdown) {
		s = storage.Settlement{Verdict: storage.Release, Reason: s.Reason}
	}
	return s, err
}

// interrupted says whether a handler's error may come from the end of its context.
func interrupted(err error) bool {
	if decided(err) || errors.Is(err, ErrGoexit) {
		return false
	}
	_, panicked := errors.AsType[*PanicError](err)
	return !panicked
}

// finish settles what a handler had and returns what it is to have next. Its place is free before the
// settlement is answered.
func (r *run) finish(u *unit, now time.Time, took time.Duration) (next *unit) {
	r.mu.Lock()
	u.over = true
	r.settling++
	r.pace.finished++
	if u.stuck {
		r.stuck--
	} else {
		u.source.end(r.seconds(u.began), r.seconds(now))
	}
	if len(r.ahead) > 0 && r.running-r.stuck <= r.config.Concurrency {
		next = r.next(now)
	} else {
		r.running--
	}
	r.freed()
	r.mu.Unlock()

	if next != nil && u.source.batch != nil {
		go r.settle(u, took) // nobody keeps the leases of the next before it begins
	} else {
		r.settle(u, took)
	}
	return next
}

// settle settles what a handler had, except what the engine has said to be lost: a message with those
// of other handlers, without waiting for the answer; a batch in one call of its own, in its order,
// whose answer it waits for.
func (r *run) settle(u *unit, took time.Duration) {
	known := 0 // leases that the engine may still know
	for _, h := range u.holds {
		h.done.Settle = ErrLeaseLost
		if !h.unfit {
			h.done.Took = took
		}
		if r.keeper.returned(h) {
			h.end.Receipt = h.receipt()
			h.done.Verdict, h.done.Delay = h.end.Verdict, h.end.Delay
			known++
		}
	}
	lease := r.config.Lease
	t := terms{repeatFor: lease, within: min(lease/3, callPatience)}
	switch {
	case u.source.batch != nil:
		r.settleTogether(u, t)
		r.settled(u)
	case known == 0:
		r.conclude(u)
	default:
		h := u.holds[0]
		r.client.settleLater(r.settles, h.end, t, func(a answer[bool]) {
			h.done.Settle = settled(&h.end, a, a.err)
			r.conclude(u)
		})
	}
}

// settleTogether settles a batch, except what is lost.
func (r *run) settleTogether(u *unit, t terms) {
	var sent []storage.Settlement
	var of []*hold
	for _, h := range u.holds {
		if h.done.Verdict != 0 {
			sent, of = append(sent, h.end), append(of, h)
		}
	}
	if len(sent) == 0 {
		return
	}
	for i, err := range r.client.settleTogether(r.settles, u.source.scope.Queue, sent, t) {
		of[i].done.Settle = err
	}
	if u.source.ordered {
		givenBack(u.holds)
	}
}

// conclude is settled for a caller that others wait for: what is told to hooks and logs holds up none
// of them.
func (r *run) conclude(u *unit) {
	if r.config.Hooks.OnDone == nil && !u.holds[0].done.bad() {
		r.settled(u)
		return
	}
	go r.settled(u)
}

// settled is called when it is known what has become of a unit.
func (r *run) settled(u *unit) {
	for _, h := range u.holds {
		r.keeper.remove(h)
		r.report(h)
	}
	r.mu.Lock()
	r.settling--
	r.freed()
	r.mu.Unlock()
}

// report logs what went wrong and tells the hooks.
func (r *run) report(h *hold) {
	r.tellers.mayBeDead(h)
	if h.done.bad() {
		r.complain(h)
	}
	if r.config.Hooks.OnDone != nil {
		r.config.Hooks.OnDone(h.Delivery, h.done)
	}
}

// bad says whether a delivery's end is worth a line in the log.
func (d *Done) bad() bool {
	return d.Settle != nil || d.Verdict == storage.Retry || d.Verdict == storage.Bury
}

func (r *run) complain(h *hold) {
	done := &h.done
	attrs := []any{"queue", h.Queue, "id", h.ID, "attempt", h.Attempt}
	if done.Err != nil {
		attrs = append(attrs, "error", done.Err)
	}
	if p, ok := errors.AsType[*PanicError](done.Err); ok {
		attrs = append(attrs, "stack", string(p.Stack))
	}
	switch {
	case errors.Is(done.Settle, ErrUnknown):
		r.log.WarnContext(h.unit.ctx, "settled with unknown outcome", append(attrs, "verdict", done.Verdict, "settle", done.Settle)...)
	case errors.Is(done.Settle, ErrLeaseLost):
		r.log.WarnContext(h.unit.ctx, "not settled, the lease was lost", attrs...)
	case done.Settle != nil:
		r.log.ErrorContext(h.unit.ctx, "not settled", append(attrs, "verdict", done.Verdict, "settle", done.Settle)...)
	case done.Verdict == storage.Bury || h.Last():
		r.log.ErrorContext(h.unit.ctx, "message is dead", attrs...)
	default:
		r.log.WarnContext(h.unit.ctx, "attempt failed", append(attrs, "delay", done.Delay)...)
	}
}

// replace makes room for another handler in place of one that is stuck. It is called for each message
// that the handler has.
func (r *run) replace(h *hold) {
	u := h.unit
	r.mu.Lock()
	if u.over { // it has returned since it was looked at
		r.mu.Unlock()
		return
	}
	if !u.stuck {
		now := time.Now()
		u.stuck = true
		r.stuck++
		u.source.end(r.seconds(u.began), r.seconds(now))
		r.begin(now)
		r.changed()
	}
	r.mu.Unlock()
	r.log.ErrorContext(u.ctx, "handler is stuck: it goes on after its context has ended",
		"queue", h.Queue, "id", h.ID, "attempt", h.Attempt, "error", context.Cause(u.ctx))
	if r.config.Hooks.OnStuck != nil {
		r.config.Hooks.OnStuck(h.Delivery)
	}
}
