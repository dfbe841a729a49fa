// SPDX-License-Identifier: Apache-2.0

package bide

import (
	"context"
	"errors"
	"runtime/debug"
	"time"

	"github.com/bidemq/bide/storage"
)

// handle runs the handler of a claimed message and settles it. Its goroutine is the handler's.
func (r *run) handle(h *hold) {
	ctx, cancel := context.WithCancelCause(r.handlers)
	h.ctx, h.cancel = ctx, cancel
	if r.config.Timeout > 0 {
		var stop context.CancelFunc
		h.ctx, stop = context.WithTimeoutCause(ctx, r.config.Timeout, ErrTimeout)
		defer stop()
	}
	defer cancel(nil)
	if s, unfit := r.unfit(h); unfit {
		r.finish(h, s, 0, nil)
		return
	}
	r.keeper.add(h)
	start := time.Now()
	if r.config.Hooks.OnStart != nil {
		r.config.Hooks.OnStart(h.ctx, h.Delivery)
	}
	guard(h.ctx, h.source.handler, h.Delivery, func(err error) {
		took := time.Since(start)
		s, err := r.outcome(h, err)
		r.finish(h, s, took, err)
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
	if interrupted(err) && errors.Is(context.Cause(h.ctx), ErrShutdown) {
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

// finish settles a delivery. The handler's place is free before that is answered.
func (r *run) finish(h *hold, s storage.Settlement, took time.Duration, err error) {
	live, stuck := r.keeper.returned(h)
	now := time.Now()
	r.mu.Lock()
	r.running--
	r.settling++
	if stuck {
		r.stuck--
	} else {
		h.source.end(r.seconds(h.claimed), r.seconds(now))
	}
	r.changed()
	r.mu.Unlock()

	done := Done{Took: took, Err: err, Settle: ErrLeaseLost}
	if live {
		s.Receipt = h.receipt
		done.Verdict, done.Delay = s.Verdict, s.Delay
		lease := r.config.Lease
		done.Settle = r.client.settle(r.settles, s, terms{repeatFor: lease, within: min(lease/3, callPatience)})
	}
	r.keeper.remove(h)
	r.report(h, done)

	r.mu.Lock()
	r.settling--
	r.changed()
	r.mu.Unlock()
}

// report logs what went wrong and tells the hook.
func (r *run) report(h *hold, done Done) {
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
		r.log.WarnContext(h.ctx, "settled with unknown outcome", append(attrs, "verdict", done.Verdict, "settle", done.Settle)...)
	case errors.Is(done.Settle, ErrLeaseLost):
		r.log.WarnContext(h.ctx, "not settled, the lease was lost", attrs...)
	case done.Settle != nil:
		r.log.ErrorContext(h.ctx, "not settled", append(attrs, "verdict", done.Verdict, "settle", done.Settle)...)
	case done.Verdict == storage.Bury || h.Last():
		r.log.ErrorContext(h.ctx, "message is dead", attrs...)
	default:
		r.log.WarnContext(h.ctx, "attempt failed", append(attrs, "delay", done.Delay)...)
	}
}

// replace makes room for another handler in place of one that is stuck.
func (r *run) replace(h *hold) {
	r.mu.Lock()
	r.stuck++
	h.source.end(r.seconds(h.claimed), r.seconds(time.Now()))
	r.changed()
	r.mu.Unlock()
	r.log.ErrorContext(h.ctx, "handler is stuck: it goes on after its context has ended",
		"queue", h.Queue, "id", h.ID, "attempt", h.Attempt, "error", context.Cause(h.ctx))
	if r.config.Hooks.OnStuck != nil {
		r.config.Hooks.OnStuck(h.Delivery)
	}
}
