// SPDX-License-Identifier: Apache-2.0

package bide

import (
	"cmp"
	"context"
	"iter"
	"sync"
	"time"

	"github.com/bidemq/bide/storage"
)

// ClaimOptions say what to claim. The zero value claims one message for 30 s.
type ClaimOptions struct {
	// Limit bounds the messages, up to storage.MaxBatch; 0 is 1.
	Limit int
	// MaxBytes stops the claim before bodies and headers exceed it, though not before the first
	// message; 0 is no bound.
	MaxBytes int
	// Lease is how long the messages are the caller's, 1 ms to storage.MaxLease; 0 is 30 s. It may
	// be shorter than a consumer's, because nobody has to extend it in time.
	Lease time.Duration
	// By says who asks, for people.
	By string
}

// Held is a message that was claimed by hand. Its lease runs from the claim on and is not kept by
// anybody: it ends unless one of the methods settles or extends it in time. They return
// [ErrLeaseLost] if it has ended, or was settled before: then nothing was changed, and somebody
// else may have the message. [ErrUnknown] means that nobody knows.
type Held struct {
	*Delivery[[]byte]
	client *Client
}

// Claim takes due messages off a queue by hand, in claim order. It does not wait: where nothing is
// due, it returns none. Most programs use a [Consumer], which keeps leases and settles.
func (c *Client) Claim(ctx context.Context, queue string, o ClaimOptions) ([]Held, error) {
	held, _, err := c.claim(ctx, queue, o)
	return held, err
}

func (c *Client) claim(ctx context.Context, queue string, o ClaimOptions) ([]Held, time.Duration, error) {
	began := time.Now()
	got, err := c.engine.Claim(ctx, time.Time{}, storage.Claim{
		Queue:    queue,
		Limit:    cmp.Or(o.Limit, 1),
		MaxBytes: o.MaxBytes,
		Lease:    cmp.Or(o.Lease, 30*time.Second),
		By:       o.By,
	})
	if c.config.Hooks.OnClaim != nil {
		c.config.Hooks.OnClaim(queue, len(got.Records), time.Since(began), err)
	}
	if err != nil {
		return nil, 0, wrap(err, "claim", queue)
	}
	held := make([]Held, len(got.Records))
	for i := range got.Records {
		d := delivery(&claimed{queue: queue, record: got.Records[i]}, got.Now)
		held[i] = Held{Delivery: &d, client: c}
	}
	return held, got.Next, nil
}

// Deliveries claims messages by hand for as long as the loop runs, waiting where nothing is due. It
// ends with ctx's error, or with the first one of the engine. What it has claimed and not handed
// out when the loop ends is released.
func (c *Client) Deliveries(ctx context.Context, queue string, o ClaimOptions) iter.Seq2[Held, error] {
	return func(yield func(Held, error) bool) {
		for {
			held, next, err := c.claim(ctx, queue, o)
			if err != nil {
				yield(Held{}, err)
				return
			}
			if !c.handOut(ctx, held, yield) {
				return
			}
			if next > 0 {
				if _, err := c.engine.Wait(ctx, []storage.Scope{{Queue: queue}}, next); err != nil {
					yield(Held{}, wrap(err, "wait for", queue))
					return
				}
			}
		}
	}
}

// handOut gives messages to a loop until that ends, by a panic perhaps, and releases the rest.
func (c *Client) handOut(ctx context.Context, held []Held, yield func(Held, error) bool) (more bool) {
	rest := held
	defer func() { c.giveBack(ctx, rest) }()
	for _, h := range held {
		rest = rest[1:]
		if !yield(h, nil) {
			return false
		}
	}
	return true
}

// giveBack releases messages together.
func (c *Client) giveBack(ctx context.Context, held []Held) {
	var all sync.WaitGroup
	for _, h := range held {
		all.Go(func() {
			if err := h.Release(context.WithoutCancel(ctx), 0); err != nil {
				c.log.WarnContext(ctx, "message was not released and waits for the end of its lease",
					"queue", h.Queue, "id", h.ID, "error", err)
			}
		})
	}
	all.Wait()
}

// Ack says that the message is done with.
func (h Held) Ack(ctx context.Context) error {
	return h.settle(ctx, storage.Settlement{Verdict: storage.Ack})
}

// Retry says that the attempt failed for the given reason, nil if there is none to tell. The
// message is due again after the delay, or dead if that was its last attempt.
func (h Held) Retry(ctx context.Context, delay time.Duration, reason error) error {
	return h.settle(ctx, storage.Settlement{Verdict: storage.Retry, Delay: delay, Reason: text(reason)})
}

// Release gives the message and its attempt back. It is due again after the delay, at once and in
// its old place if that is 0.
func (h Held) Release(ctx context.Context, delay time.Duration) error {
	return h.settle(ctx, storage.Settlement{Verdict: storage.Release, Delay: delay})
}

// Bury gives the message up: it lies among the dead until it is redriven or purged.
func (h Held) Bury(ctx context.Context, reason error) error {
	return h.settle(ctx, storage.Settlement{Verdict: storage.Bury, Reason: text(reason)})
}

// Extend makes the lease end the given time from now on.
func (h Held) Extend(ctx context.Context, lease time.Duration) error {
	lost, err := h.client.engine.Extend(ctx, time.Time{}, lease, []storage.Receipt{h.receipt()})
	if err == nil && len(lost) > 0 {
		err = ErrLeaseLost
	}
	return wrapID(err, "extend", h.Queue, h.ID)
}

func (h Held) settle(ctx context.Context, s storage.Settlement) error {
	s.Receipt = h.receipt()
	return h.client.settle(ctx, s, terms{repeatFor: h.client.config.RepeatFor, within: callPatience})
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
