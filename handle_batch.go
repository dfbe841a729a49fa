// SPDX-License-Identifier: Apache-2.0

package bide

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/bidemq/bide/storage"
)

// BatchConfig says what a batch is. The zero value is usable.
//
// One handler has one batch at a time. The engine decides when there is one: nobody holds a lease
// while waiting for more. All leases of a batch are kept while its handler runs; if one is lost, the
// handler's context ends. The batch is settled in one step.
type BatchConfig struct {
	// Max bounds the messages of a batch, up to storage.MaxBatch; 0 is 128.
	Max int
	// Min is how many messages of a key, or without a key, must be due before they are handed out,
	// and Linger how long the first of too few waits at most. They are stored with the queue when the
	// consumer runs, and hold for everybody who claims from it; of several consumers the last to begin
	// wins. A Min of 0 leaves both as they are, 1 switches them off. Above 1 it needs a Linger, and
	// must not be above Max.
	Min    int
	Linger time.Duration
	// Mixed makes batches of whatever is due, in claim order, rather than of one key.
	Mixed bool
}

// BatchHandler does what a batch of messages asks for: those of one key, in the key's order, or, where
// batches are mixed, of any, and then key is "". What it returns counts for every delivery that it has
// not decided about by [Delivery.Decide], as what a [Handler] returns does for its one.
//
// In an ordered queue a delivery that is to come again takes those behind it along: they come again
// too, no attempt of theirs is spent, and they are reported as released.
//
// Middleware sees a batch as its first delivery.
type BatchHandler func(ctx context.Context, key string, ds []*Delivery[[]byte]) error

// HandleBatch makes the consumer run h for batches of messages of a queue, or of a part of one;
// [Queue.HandleBatch] is the typed form. It panics if the handler is nil, the same messages have one
// already, the configuration is out of its bounds, or the consumer is running.
func (c *Consumer) HandleBatch(scope storage.Scope, h BatchHandler, config BatchConfig, wraps ...Middleware) {
	config.Max = cmp.Or(config.Max, 128)
	switch {
	case h == nil:
		misuse("queue %q has a nil handler", scope.Queue)
	case config.Max < 1 || config.Max > storage.MaxBatch || config.Min < 0 || config.Min > config.Max:
		misuse("queue %q: Max %d or Min %d of batches is out of its bounds", scope.Queue, config.Max, config.Min)
	case config.Linger < 0 || config.Linger > storage.MaxDelay || (config.Min > 1) != (config.Linger > 0):
		misuse("queue %q: batches with a Min above 1 need a Linger, and others have none", scope.Queue)
	}
	c.handle(&route{scope: scope, batch: &config, handler: func(ctx context.Context, _ *Delivery[[]byte]) error {
		u, ok := ctx.Value(batchOf{}).(*unit)
		if !ok {
			return DeadLetter(errors.New("a middleware has run a batch handler without its context"))
		}
		key, ds := u.holds[0].Key, make([]*Delivery[[]byte], 0, len(u.holds))
		for _, held := range u.holds {
			if !held.unfit {
				ds = append(ds, held.Delivery)
			}
		}
		if config.Mixed {
			key = ""
		}
		return h(ctx, key, ds)
	}}, wraps)
}

// batchOf is the key of a context's batch.
type batchOf struct{}

// configure tells the engine once what the batches of a source are, and that its dead are to be told:
// nothing is to die before that.
func (r *run) configure(ctx context.Context, s *source) error {
	r.mu.Lock()
	done := s.configured || s.batch == nil && r.config.OnDead == nil
	r.mu.Unlock()
	if done {
		return nil
	}
	var edit storage.ConfigEdit
	if s.batch != nil && s.batch.Min > 0 {
		edit.MinBatch, edit.Linger = &s.batch.Min, &s.batch.Linger
	}
	if r.config.OnDead != nil {
		edit.TellDead = new(true)
	}
	config, err := r.client.engine.Configure(ctx, s.scope.Queue, edit)
	r.mu.Lock()
	defer r.mu.Unlock()
	s.configured, s.ordered = err == nil, config.Ordered
	return err
}

// givenBack corrects what is told of a batch of an ordered queue: what was lost behind a delivery of
// its key that comes again was given back with it. What was lost before it was sent was not. R11
func givenBack(holds []*hold) {
	again := map[string]bool{} // by key
	for _, h := range holds {
		d := &h.done
		if again[h.Key] && d.Verdict != 0 && errors.Is(d.Settle, ErrLeaseLost) {
			*d = Done{Verdict: storage.Release}
		}
		comes := d.Verdict == storage.Release || d.Verdict == storage.Return || d.Verdict == storage.Retry && !h.Last()
		if h.Key != "" && d.Settle == nil && comes { // without a key there is no order
			again[h.Key] = true
		}
	}
}
