// SPDX-License-Identifier: Apache-2.0

package bide

import (
	"context"
	"time"

	"github.com/bidemq/bide/storage"
)

// Hooks are called as things happen, for metrics and traces. Any may be nil and costs nothing then.
// They are called from many goroutines, hold up what they report, and must not panic.
type Hooks struct {
	// OnEnqueue is called when a message was answered for. The message is as the caller gave it,
	// its ID may be "", and is not to be changed; the result has the ID.
	OnEnqueue func(queue string, m *Message, r Result)
	// OnClaim is called after each claim.
	OnClaim func(queue string, messages int, took time.Duration, err error)
	// OnStart is called before a handler begins, with its context.
	OnStart func(ctx context.Context, d *Delivery[[]byte])
	// OnDone is called when a delivery is settled, or could not be.
	OnDone func(d *Delivery[[]byte], done Done)
	// OnExtend is called after each call that kept leases.
	OnExtend func(queue string, leases, lost int, err error)
	// OnLeaseLost is called when a running handler's lease is lost; its context has ended.
	OnLeaseLost func(d *Delivery[[]byte])
	// OnStuck is called when a handler goes on for longer than [ConsumerConfig.Grace] after its
	// context ended, and another one gets its place.
	OnStuck func(d *Delivery[[]byte])
}

// Done says how a delivery ended.
//
// A retry or a release may have left the message dead: the attempts that it had were spent (see
// [Delivery.Last]), or the deliveries that [storage.QueueConfig.MaxDeliveries] allows. Only the
// engine knows the latter: its dead messages have the reason [storage.ReasonMaxDeliveries].
type Done struct {
	Verdict storage.Verdict // what it was settled with; 0 if the lease was lost before
	Delay   time.Duration   // of a retry or a release
	Took    time.Duration   // by the handler; 0 if it was not begun
	Err     error           // what the handler returned, *PanicError if it panicked
	Settle  error           // why the settlement is not known to have worked, nil if it has
}
