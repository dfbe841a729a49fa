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
	source  *source
	holds   []*hold
	ctx     context.Context // of the handler
	cancel  context.CancelCauseFunc
	claimed time.Time // when the claim was answered

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
	ctx, cancel := context.WithCancelCause(r.handlers)
	u.ctx, u.cancel = ctx, cancel
	if r.config.Timeout > 0 {
		var stop context.CancelFunc
		u.ctx, stop = context.WithTimeoutCause(ctx, r.config.Timeout, ErrTimeout)
		defer stop()
	}
	defer cancel(nil)
	fit := 0
	for _, h := range u.holds {
		h.unit = u
		if h.end, h.unfit = r.unfit(h); !h.unfit {
			fit++
		}
	}
	if fit == 0 {
		return r.finish(u, 0)
	}
	first := u.holds[0]
	for _, h := range slices.Backward(u.holds) {
		if !h.unfit {
			first = h
		}
		r.keeper.add(h) // also what is unfit: it is settled with the others, in its order
	}
	start := time.Now()
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
		took := time.Since(start)
		for _, h := range u.holds {
			if !h.unfit {
				h.end, h.err = r.outcome(h, h.decision(err))
			}
		}
		next = r.finish(u, took)
		if errors.Is(err, ErrGoexit) && next != nil { // the goroutine is at its end
			go r.work(next)
			next = nil
		}
	})
	return next
}

// unfit says how a message ends whose handler is not to begin. The process may have stood still
// since the claim.
func (r *run) unfit(h *hold) (storage.Settlement, bool) {
	now := time.Now()
	switch {
	case !h.expiry.IsZero() && !now.Before(h.expiry):
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
func (r *run) finish(u *unit, took time.Duration) (next *unit) {
	now := time.Now()
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
	dones := make([]Done, len(u.holds))
	sent := make([]storage.Settlement, 0, len(u.holds))
	at := make([]int, 0, len(u.holds)) // index of the hold of each
	for i, h := range u.holds {
		dones[i].Settle = ErrLeaseLost
		if !h.unfit {
			dones[i].Took, dones[i].Err = took, h.err
		}
		if r.keeper.returned(h) {
			h.end.Receipt = h.receipt
			dones[i].Verdict, dones[i].Delay = h.end.Verdict, h.end.Delay
			sent, at = append(sent, h.end), append(at, i)
		}
	}
	lease := r.config.Lease
	t := terms{repeatFor: lease, within: min(lease/3, callPatience)}
	switch {
	case u.source.batch == nil && len(sent) == 0:
		r.conclude(u, dones)
		return
	case u.source.batch == nil:
		r.client.settleLater(r.settles, sent[0], t, func(err error) {
			dones[0].Settle = err
			r.conclude(u, dones)
		})
		return
	case len(sent) == 0:
	default:
		for k, err := range r.client.settleTogether(r.settles, u.source.scope.Queue, sent, t) {
			dones[at[k]].Settle = err
		}
	}
	if u.source.ordered {
		givenBack(u.holds, dones)
	}
	r.settled(u, dones)
}

// conclude is settled for a caller that others wait for: what is told to hooks and logs holds up none
// of them.
func (r *run) conclude(u *unit, dones []Done) {
	if r.config.Hooks.OnDone == nil && !slices.ContainsFunc(dones, Done.bad) {
		r.settled(u, dones)
		return
	}
	go r.settled(u, dones)
}

// settled is called when it is known what has become of a unit.
func (r *run) settled(u *unit, dones []Done) {
	for i, h := range u.holds {
		r.keeper.remove(h)
		r.report(h, dones[i])
	}
	r.mu.Lock()
	r.settling--
	r.freed()
	r.mu.Unlock()
}

// report logs what went wrong and tells the hooks.
func (r *run) report(h *hold, done Done) {
	r.tellers.mayBeDead(h, done)
	if done.bad() {
		r.complain(h, done)
	}
	if r.config.Hooks.OnDone != nil {
		r.config.Hooks.OnDone(h.Delivery, done)
	}
}

// bad says whether a delivery's end is worth a line in the log.
func (d Done) bad() bool {
	return d.Settle != nil || d.Verdict == storage.Retry || d.Verdict == storage.Bury
}

func (r *run) complain(h *hold, done Done) {
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
