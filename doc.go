// SPDX-License-Identifier: Apache-2.0

// Package bide is a delay and message queue. A message is enqueued with a due time, waits in an
// engine (memory, a directory, Redis, a server) until then, and is handed to a handler that acks
// it, fails it or puts it off.
//
// A [Queue] ties a name to a Go type, a [Client] talks to an engine, and a [Consumer] runs
// handlers:
//
//	var OrderTimeout = bide.NewQueue[Order]("order.timeout")
//
//	client := bide.NewClient(engine, bide.ClientConfig{})
//	_, err := OrderTimeout.Enqueue(ctx, client, order, bide.In(30*time.Minute), bide.ID(order.Number))
//
//	consumer := bide.NewConsumer(client, bide.ConsumerConfig{Concurrency: 64})
//	OrderTimeout.Handle(consumer, func(ctx context.Context, d *bide.Delivery[Order]) error {
//		return cancelOrder(ctx, d.Body, d.Token())
//	})
//	err = consumer.Run(ctx) // returns when ctx ends, after draining
//
// # What is promised
//
// A message is never handed out before its due time, by the clock of the engine. It is handed out
// at least once: a handler that has done its work and loses its lease before that is recorded runs
// again, on another consumer perhaps. Handlers are therefore repeatable, or hand [Delivery.Token]
// to what they write to, so that a late one is refused there. An attempt is recorded before its
// handler begins, so a message that kills its process does not do so for ever.
//
// Enqueueing an id that is already waiting or running changes nothing and says so, which makes
// repeating an enqueue harmless.
//
// Package storage has the rules of engines in full; errors of this package and of engines are
// decided with errors.Is and the variables below.
package bide
