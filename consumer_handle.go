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

	stuck bool // the handler has been given up
	over  bool // the handler has returned
}

// handle runs the handler of what was claimed and settles it. Its goroutine is the handler's.
func (r *run) handle(u *unit) {
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
		r.finish(u, 0)
		return
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
		r.finish(u, took)
	})
}

// unfit says how a message ends whose handler is not to begin. The process may have stood still
// since the claim.
func (r *run) unfit(h *hold) (storage.Settlement, bool) {
	now := time.Now()
	switch {
	case !h.expiry.IsZero() && !now.Before(h.expiry):
		return storage.Settlement{Verdict: storage.Expire}, true // R13
	case r.ctx.Err() != nil || !r.keeper.safe(h, now):
		return storage.Settlement{Verdict: storage.Release}, true
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

// finish settles what a handler had. The handler's place is free before that is answered.
func (r *run) finish(u *unit, took time.Duration) {
	live := make([]bool, len(u.holds))
	for i, h := range u.holds {
		live[i] = r.keeper.returned(h)
	}
	now := time.Now()
	r.mu.Lock()
	u.over = true
	r.running--
	r.settling++
	if u.stuck {
		r.stuck--
	} else {
		u.source.end(r.seconds(u.claimed), r.seconds(now))
	}
	r.changed()
	r.mu.Unlock()

	for i, done := range r.settle(u, live) {
		h := u.holds[i]
		if !h.unfit {
			done.Took, done.Err = took, h.err
		}
		r.keeper.remove(h)
		r.report(h, done)
	}

	r.mu.Lock()
	r.settling--
	r.changed()
	r.mu.Unlock()
}

// settle settles what a handler had, except what the engine has said to be lost: a message with
// those of other handlers, a batch in one call of its own, in its order.
func (r *run) settle(u *unit, live []bool) []Done {
	dones := make([]Done, len(u.holds))
	var sent []storage.Settlement
	var at []int // index of the hold of each
	for i, h := range u.holds {
		dones[i].Settle = ErrLeaseLost
		if live[i] {
			h.end.Receipt = h.receipt
			dones[i].Verdict, dones[i].Delay = h.end.Verdict, h.end.Delay
			sent, at = append(sent, h.end), append(at, i)
		}
	}
	lease := r.config.Lease
	t := terms{repeatFor: lease, within: min(lease/3, callPatience)}
	switch {
	case len(sent) == 0:
	case u.source.batch == nil:
		dones[at[0]].Settle = r.client.settle(r.settles, sent[0], t)
	default:
		for k, err := range r.client.settleTogether(r.settles, u.source.scope.Queue, sent, t) {
			dones[at[k]].Settle = err
		}
	}
	if u.source.ordered && u.source.batch != nil {
		givenBack(u.holds, dones)
	}
	return dones
}

// report logs what went wrong and tells the hooks.
func (r *run) report(h *hold, done Done) {
	r.tellers.mayBeDead(h, done)
	if done.Settle != nil || done.Verdict == storage.Retry || done.Verdict == storage.Bury {
		r.complain(h, done)
	}
	if r.config.Hooks.OnDone != nil {
		r.config.Hooks.OnDone(h.Delivery, done)
	}
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
		u.stuck = true
		r.stuck++
		u.source.end(r.seconds(u.claimed), r.seconds(time.Now()))
		r.changed()
	}
	r.mu.Unlock()
	r.log.ErrorContext(u.ctx, "handler is stuck: it goes on after its context has ended",
		"queue", h.Queue, "id", h.ID, "attempt", h.Attempt, "error", context.Cause(u.ctx))
	if r.config.Hooks.OnStuck != nil {
		r.config.Hooks.OnStuck(h.Delivery)
	}
}
