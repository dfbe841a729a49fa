// SPDX-License-Identifier: Apache-2.0

package bide

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/bidemq/bide/storage"
)

// hold is a claimed message of a running consumer.
type hold struct {
	*Delivery[[]byte]
	unit   *unit              // whose handler has it
	expiry time.Time          // by the consumer's clock, zero if never
	unfit  bool               // no handler has begun it
	end    storage.Settlement // without a receipt
	err    error              // that it ended with

	// Guarded by keeper.mu.

	renewed   time.Time // when the claim or the extension was sent that the lease is from
	ended     time.Time // when the keeper saw that the context had ended
	extending bool      // a call is under way
	lapsed    bool      // the keeper gave the lease up: it was reported lost, or could not be extended in time
	lost      bool      // the engine said so
	settling  bool      // the handler has returned
}

// keeper keeps the leases of running handlers, and ends the contexts of those that lose theirs.
//
// A lease is extended when a third of it has passed, and again every twelfth until that works. It
// is judged by the consumer's own monotonic clock from the instant the call was sent, which is
// never later than the engine's: if an eighth is left, the handler is stopped while nobody else can
// have the message.
type keeper struct {
	engine storage.Engine
	lease  time.Duration
	grace  time.Duration
	hooks  Hooks
	log    *slog.Logger
	stuck  func(*hold) // called when a handler has outlasted its context by grace
	wake   chan struct{}

	mu   sync.Mutex
	held map[storage.Receipt]*hold // from claim to settlement, or until the handler is stuck
}

func (k *keeper) add(h *hold) {
	k.mu.Lock()
	k.held[h.receipt] = h
	first := len(k.held) == 1
	k.mu.Unlock()
	if first {
		poke(k.wake)
	}
}

// returned notes that the handler has returned. It says whether the engine may still know the lease.
func (k *keeper) returned(h *hold) (live bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	h.settling = true
	return !h.lost
}

func (k *keeper) remove(h *hold) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.held, h.receipt)
}

// safe says whether enough of the lease is left to begin.
func (k *keeper) safe(h *hold, now time.Time) bool { return now.Before(k.limit(h)) }

func (k *keeper) limit(h *hold) time.Time { return h.renewed.Add(k.lease - k.lease/8) }

// run returns when ctx is done and no call is under way.
func (k *keeper) run(ctx context.Context) {
	var calls sync.WaitGroup
	defer calls.Wait()
	timer := time.NewTimer(k.lease)
	defer timer.Stop()
	var pulse <-chan time.Time // nil while nothing is held, so that an idle consumer sleeps
	for {
		select {
		case <-ctx.Done():
			return
		case <-k.wake:
			if pulse == nil {
				timer.Reset(k.lease / 12)
				pulse = timer.C
			}
		case <-pulse:
			for queue, rs := range k.look(time.Now()) {
				for some := range slices.Chunk(rs, storage.MaxBatch) {
					calls.Go(func() { k.extend(ctx, queue, some) })
				}
			}
			pulse = nil
			if k.holding() {
				timer.Reset(k.lease / 12)
				pulse = timer.C
			}
		}
	}
}

func (k *keeper) holding() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.held) > 0
}

// look ends what has to end, and returns the leases to extend by queue.
func (k *keeper) look(now time.Time) map[string][]storage.Receipt {
	k.mu.Lock()
	due := map[string][]storage.Receipt{}
	var lapsed, stuck []*hold
	for receipt, h := range k.held {
		if h.ended.IsZero() && h.unit.ctx.Err() != nil {
			h.ended = now
		}
		switch {
		case h.lapsed:
		case !h.settling && !k.safe(h, now):
			h.lapsed = true
			if h.ended.IsZero() {
				h.ended = now
			}
			lapsed = append(lapsed, h)
		case now.Sub(h.renewed) >= k.lease/3 && !h.extending:
			h.extending = true
			due[h.Queue] = append(due[h.Queue], receipt)
		}
		if !h.settling && !h.ended.IsZero() && now.Sub(h.ended) >= k.grace {
			delete(k.held, receipt)
			stuck = append(stuck, h)
		}
	}
	k.mu.Unlock()

	k.stop(lapsed)
	for _, h := range stuck {
		k.stuck(h)
	}
	return due
}

// extend makes one call for leases of one queue.
func (k *keeper) extend(ctx context.Context, queue string, rs []storage.Receipt) {
	ctx, cancel := context.WithTimeout(ctx, min(k.lease/6, callPatience))
	defer cancel()
	sent := time.Now()
	lost, err := k.engine.Extend(ctx, time.Time{}, k.lease, rs)
	if err != nil {
		k.log.WarnContext(ctx, "leases were not extended, trying again", "queue", queue, "leases", len(rs), "error", err)
	}

	k.mu.Lock()
	for _, r := range rs {
		if h := k.held[r]; h != nil {
			h.extending = false
		}
	}
	var stopped []*hold
	if err == nil {
		for _, r := range lost {
			if h := k.held[r]; h != nil && !h.settling { // a settlement may have overtaken the call
				h.lost = true
				if !h.lapsed {
					h.lapsed = true
					if h.ended.IsZero() {
						h.ended = sent
					}
					stopped = append(stopped, h)
				}
			}
		}
		for _, r := range rs {
			if h := k.held[r]; h != nil && !h.lapsed {
				h.renewed = sent
			}
		}
	}
	k.mu.Unlock()

	k.stop(stopped)
	if k.hooks.OnExtend != nil {
		k.hooks.OnExtend(queue, len(rs), len(lost), err)
	}
}

// stop ends handlers whose leases are lost. Their messages may be with another consumer soon, so
// the sooner they stop, the less is done twice.
func (k *keeper) stop(lapsed []*hold) {
	for _, h := range lapsed {
		h.unit.cancel(ErrLeaseLost)
		k.log.WarnContext(h.unit.ctx, "lease lost, stopping its handler", "queue", h.Queue, "id", h.ID, "attempt", h.Attempt)
		if k.hooks.OnLeaseLost != nil {
			k.hooks.OnLeaseLost(h.Delivery)
		}
	}
}

// poke leaves a signal for who reads the channel, if there is none yet.
func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
