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
	unit  *unit              // whose handler has it
	unfit bool               // no handler has begun it
	end   storage.Settlement // without a receipt until it is sent
	done  Done               // complete when it is settled

	// Guarded by keeper.mu.

	place     int       // in keeper.held, while it is there
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
	lane   func(storage.Receipt) string // leases of the same are extended together
	lease  time.Duration
	grace  time.Duration
	hooks  Hooks
	log    *slog.Logger
	stuck  func(*hold) // called when a handler has outlasted its context by grace
	wake   chan struct{}

	mu   sync.Mutex
	held []*hold // from claim to settlement, or until the handler is stuck; in no order
}

func (k *keeper) add(h *hold) {
	k.mu.Lock()
	h.place = len(k.held)
	k.held = append(k.held, h)
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
	k.drop(h)
}

// has says whether the lease of a message is kept. The caller holds k.mu.
func (k *keeper) has(h *hold) bool { return h.place < len(k.held) && k.held[h.place] == h }

// drop keeps the lease of a message no longer. The caller holds k.mu.
func (k *keeper) drop(h *hold) {
	if !k.has(h) {
		return
	}
	last := len(k.held) - 1
	k.held[h.place] = k.held[last]
	k.held[h.place].place = h.place
	k.held[last] = nil
	k.held = k.held[:last]
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
			for _, holds := range k.look(time.Now()) {
				for some := range slices.Chunk(holds, storage.MaxBatch) {
					calls.Go(func() { k.extend(ctx, some[0].Queue, some) })
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

// look ends what has to end, and returns what is to be extended by lane.
func (k *keeper) look(now time.Time) map[string][]*hold {
	k.mu.Lock()
	due := map[string][]*hold{}
	var lapsed, stuck []*hold
	for _, h := range k.held {
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
			lane := k.lane(h.receipt())
			due[lane] = append(due[lane], h)
		}
		if !h.settling && !h.ended.IsZero() && now.Sub(h.ended) >= k.grace {
			stuck = append(stuck, h)
		}
	}
	for _, h := range stuck {
		k.drop(h)
	}
	k.mu.Unlock()

	k.stop(lapsed)
	for _, h := range stuck {
		k.stuck(h)
	}
	return due
}

// extend makes one call for leases of one queue.
func (k *keeper) extend(ctx context.Context, queue string, holds []*hold) {
	ctx, cancel := context.WithTimeout(ctx, min(k.lease/6, callPatience))
	defer cancel()
	rs := make([]storage.Receipt, len(holds))
	for i, h := range holds {
		rs[i] = h.receipt()
	}
	sent := time.Now()
	lost, err := k.engine.Extend(ctx, time.Time{}, k.lease, rs)
	if err != nil {
		k.log.WarnContext(ctx, "leases were not extended, trying again", "queue", queue, "leases", len(rs), "error", err)
	}

	gone := make(map[storage.Receipt]bool, len(lost))
	for _, r := range lost {
		gone[r] = true
	}
	k.mu.Lock()
	var stopped []*hold
	for i, h := range holds {
		h.extending = false
		if err != nil || !k.has(h) {
			continue
		}
		if gone[rs[i]] && !h.settling { // a settlement may have overtaken the call
			h.lost = true
			if !h.lapsed {
				h.lapsed = true
				if h.ended.IsZero() {
					h.ended = sent
				}
				stopped = append(stopped, h)
			}
		}
		if !h.lapsed {
			h.renewed = sent
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
		h.unit.handling.end(ErrLeaseLost)
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
