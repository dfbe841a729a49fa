// SPDX-License-Identifier: Apache-2.0

package bide

import (
	"context"
	"slices"
	"time"

	"github.com/bidemq/bide/storage"
)

// waiting is the one Wait of a consumer, for all queues that are known to be empty. It is restarted
// when that set changes: in a queue that is not empty notices are nothing new.
type waiting struct {
	*run
	queues []string
	cancel context.CancelFunc
	ended  chan struct{} // closed when the Wait is over; nil if there was none
}

// watch makes sure that a Wait for the queues is under way, until next at the latest if that is
// set.
func (w *waiting) watch(ctx context.Context, queues []string, next time.Time) {
	if w.under() && slices.Equal(queues, w.queues) {
		return
	}
	w.stop()
	if len(queues) == 0 {
		return
	}
	d := storage.Forever
	if !next.IsZero() {
		d = max(time.Until(next), 0)
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	w.queues, w.cancel, w.ended = queues, cancel, ended
	go func() {
		defer poke(w.wake)
		defer close(ended)
		defer cancel()
		w.wait(ctx, queues, d)
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
// every queue is claimed again.
func (r *run) wait(ctx context.Context, queues []string, d time.Duration) {
	scopes := make([]storage.Scope, len(queues))
	for i, q := range queues {
		scopes[i].Queue = q
	}
	indexes, err := r.client.engine.Wait(ctx, scopes, d)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		r.mu.Lock()
		r.waitFailures++
		failures := r.waitFailures
		r.mu.Unlock()
		r.log.WarnContext(ctx, "waiting for messages failed, trying again", "queues", queues, "error", err)
		if sleep(ctx, repeatAfter(failures)) != nil {
			return
		}
		indexes = indexes[:0]
		for i := range queues {
			indexes = append(indexes, i)
		}
	}
	var ready []string
	for _, i := range indexes {
		ready = append(ready, queues[i])
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		r.waitFailures = 0
	}
	for _, s := range r.sources {
		if s.asked == 0 && slices.Contains(ready, s.name) {
			r.activate(s)
		}
	}
}
