// SPDX-License-Identifier: Apache-2.0

package bide

import (
	"context"
	"slices"
	"time"

	"github.com/bidemq/bide/storage"
)

// waiting is the one Wait of a consumer, for all sources that are known to be empty. It is restarted
// when that set changes: from a source that is not empty notices are nothing new.
type waiting struct {
	*run
	idle   []*source
	cancel context.CancelFunc
	ended  chan struct{} // closed when the Wait is over; nil if there was none
}

// watch makes sure that a Wait for the sources is under way, until next at the latest if that is
// set.
func (w *waiting) watch(ctx context.Context, idle []*source, next time.Time) {
	if w.under() && slices.Equal(idle, w.idle) {
		return
	}
	w.stop()
	if len(idle) == 0 {
		return
	}
	d := storage.Forever
	if !next.IsZero() {
		d = max(time.Until(next), 0)
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	w.idle, w.cancel, w.ended = idle, cancel, ended
	go func() {
		defer poke(w.wake)
		defer close(ended)
		defer cancel()
		w.wait(ctx, idle, d)
	}()
}

func (w *waiting) under() bool {
	if w.ended == nil {
		return false
	}
	select {
	case <-w.ended:
		return false
	default:
		return true
	}
}

// stop ends the Wait and returns when it is over.
func (w *waiting) stop() {
	if w.ended != nil {
		w.cancel()
		<-w.ended
		w.ended = nil
	}
}

// wait makes one Wait and marks what it reports. After an error notices may have been missed, so
// every source is claimed again.
func (r *run) wait(ctx context.Context, idle []*source, d time.Duration) {
	scopes := make([]storage.Scope, len(idle))
	for i, s := range idle {
		scopes[i] = s.scope
	}
	indexes, err := r.client.engine.Wait(ctx, scopes, d)
	if ctx.Err() != nil {
		return
	}
	ready := make([]*source, 0, len(idle))
	for _, i := range indexes {
		ready = append(ready, idle[i])
	}
	if err != nil {
		r.mu.Lock()
		r.waitFailures++
		failures := r.waitFailures
		r.mu.Unlock()
		r.log.WarnContext(ctx, "waiting for messages failed, trying again", "error", err)
		if sleep(ctx, repeatAfter(failures)) != nil {
			return
		}
		ready = idle
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		r.waitFailures = 0
	}
	for _, s := range ready {
		if s.asked == 0 {
			r.activate(s)
		}
	}
}
