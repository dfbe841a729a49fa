// SPDX-License-Identifier: Apache-2.0

package bide

import (
	"time"

	"github.com/bidemq/bide/storage"
)

// Delivery is one attempt at one message. It belongs to the handler that got it; what its reference
// fields point to is not shared with other deliveries.
type Delivery[T any] struct {
	Body T

	Queue       string
	ID          string
	Key         string            // "" is none
	Headers     map[string]string // nil if there are none
	Priority    int
	Attempt     int           // this one, from 1; attempts that were given back do not count
	Deliveries  int           // times that the message was handed out, this one included
	MaxAttempts int           // attempts allowed, 0 is no limit
	Due         time.Time     // of this attempt
	Enqueued    time.Time     // by the engine's clock, as Due and Claimed are
	Claimed     time.Time     // when the message was handed out
	Lag         time.Duration // from Due to Claimed; never below zero unless the engine is wrong

	claimed *claimed // shared by all forms of the delivery
}

// claimed is a record as a claim brought it, and what a handler has decided about it.
type claimed struct {
	queue   string
	record  storage.Record
	decided bool
	choice  error
}

// Decide says how this delivery ends, whatever the handler returns for the others of its batch: as if
// the handler had had it alone and returned err. Nil acks it; of several calls the last counts. It is
// meant for [Queue.HandleBatch], and works for single deliveries too. It must not be called after the
// handler has returned.
func (d *Delivery[T]) Decide(err error) { d.claimed.decided, d.claimed.choice = true, err }

// decision is the error that the delivery ends with, whose handler returned err.
func (d *Delivery[T]) decision(err error) error {
	if d.claimed.decided {
		return d.claimed.choice
	}
	return err
}

// delivery is that of a record which was claimed at an instant.
func delivery(c *claimed, now time.Time) Delivery[[]byte] {
	r := &c.record
	return Delivery[[]byte]{
		Body:        r.Body,
		Queue:       c.queue,
		ID:          r.ID,
		Key:         r.Key,
		Headers:     r.Headers,
		Priority:    r.Priority,
		Attempt:     r.Attempts,
		Deliveries:  r.Deliveries,
		MaxAttempts: r.MaxAttempts,
		Due:         r.Due,
		Enqueued:    r.Enqueued,
		Claimed:     now,
		Lag:         now.Sub(r.Due),
		claimed:     c,
	}
}

func (d *Delivery[T]) receipt() storage.Receipt { return d.claimed.record.Receipt(d.claimed.queue) }

// Token is the fencing token of this delivery: it grows with every claim in the queue. What a
// handler writes to can keep the highest token it has seen and refuse lower ones, so that a handler
// that has lost its lease without noticing changes nothing any more.
func (d *Delivery[T]) Token() int64 { return d.claimed.record.Lease.Token }

// Last says whether this is the last attempt allowed: if it fails, the message is dead.
func (d *Delivery[T]) Last() bool { return d.MaxAttempts > 0 && d.Attempt >= d.MaxAttempts }

// Record is all that the engine said about the message when it was claimed. It is not to be
// changed.
func (d *Delivery[T]) Record() *storage.Record { return &d.claimed.record }

// typed is d with its body decoded.
func typed[T any](d *Delivery[[]byte], body T) *Delivery[T] {
	return &Delivery[T]{
		Body:        body,
		Queue:       d.Queue,
		ID:          d.ID,
		Key:         d.Key,
		Headers:     d.Headers,
		Priority:    d.Priority,
		Attempt:     d.Attempt,
		Deliveries:  d.Deliveries,
		MaxAttempts: d.MaxAttempts,
		Due:         d.Due,
		Enqueued:    d.Enqueued,
		Claimed:     d.Claimed,
		Lag:         d.Lag,
		claimed:     d.claimed,
	}
}
