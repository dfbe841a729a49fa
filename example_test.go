// SPDX-License-Identifier: Apache-2.0

package bide_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/memstore"
	"github.com/bidemq/bide/storage"
)

// Order is the payload of the queue below.
type Order struct {
	Number string
	Cents  int
}

// OrderTimeout ties the name of a queue to the type of its payload, for producers and consumers.
var OrderTimeout = bide.NewQueue[Order]("order.timeout")

// A message waits for its due time, is handled once, and Run returns when its context ends.
func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	engine := memstore.New(memstore.Options{}) // or one that keeps messages in a directory, or in Redis
	client := bide.NewClient(engine, bide.ClientConfig{})

	_, err := OrderTimeout.Enqueue(ctx, client, Order{Number: "A-1", Cents: 4200},
		bide.In(50*time.Millisecond), bide.ID("A-1"))
	if err != nil {
		fmt.Println(err)
		return
	}

	consumer := bide.NewConsumer(client, bide.ConsumerConfig{Concurrency: 64})
	OrderTimeout.Handle(consumer, func(ctx context.Context, d *bide.Delivery[Order]) error {
		fmt.Println("order", d.Body.Number, "was not paid, attempt", d.Attempt)
		cancel() // this example has one message
		return nil
	})
	if err := consumer.Run(ctx); err != nil {
		fmt.Println(err)
	}
	// Output: order A-1 was not paid, attempt 1
}

// Enqueueing an id twice stores one message, so a call whose answer was lost can be repeated.
func ExampleQueue_Enqueue() {
	ctx := context.Background()
	client := bide.NewClient(memstore.New(memstore.Options{}), bide.ClientConfig{})
	for range 2 {
		res, err := OrderTimeout.Enqueue(ctx, client, Order{Number: "A-1"}, bide.ID("A-1"), bide.In(time.Hour))
		fmt.Println(res.Outcome, err)
	}
	_, err := OrderTimeout.Enqueue(ctx, client, Order{}, bide.In(-time.Hour))
	fmt.Println(errors.Is(err, bide.ErrInvalid))
	// Output:
	// stored <nil>
	// duplicate <nil>
	// true
}

// Many messages are stored together, and one that is refused does not keep the others out.
func ExampleQueue_EnqueueMany() {
	client := bide.NewClient(memstore.New(memstore.Options{}), bide.ClientConfig{})
	orders := []Order{{Number: "A-1"}, {Number: "A\n2"}, {Number: "A-3"}}
	results, err := OrderTimeout.EnqueueMany(context.Background(), client, orders, func(o Order, m *bide.Message) {
		m.ID = o.Number
		m.Delay = 30 * time.Minute
	})
	for _, r := range results {
		fmt.Printf("%q %s\n", r.ID, r.Outcome)
	}
	fmt.Println(errors.Is(err, bide.ErrInvalid))
	// Output:
	// "A-1" stored
	// "A\n2" refused
	// "A-3" stored
	// true
}

// The customer has paid: the message that would have canceled the order goes away.
func ExampleQueue_Cancel() {
	ctx := context.Background()
	client := bide.NewClient(memstore.New(memstore.Options{}), bide.ClientConfig{})
	if _, err := OrderTimeout.Enqueue(ctx, client, Order{}, bide.ID("A-1"), bide.In(time.Hour)); err != nil {
		fmt.Println(err)
	}
	fmt.Println(OrderTimeout.Cancel(ctx, client, "A-1"))
	fmt.Println(errors.Is(OrderTimeout.Cancel(ctx, client, "A-1"), bide.ErrNotFound))
	// Output:
	// <nil>
	// true
}

// Dead messages lie in their queue, with the reason, until they are redriven or purged.
func ExampleQueue_Messages() {
	ctx := context.Background()
	client := bide.NewClient(memstore.New(memstore.Options{}), bide.ClientConfig{})
	if _, err := OrderTimeout.Enqueue(ctx, client, Order{Number: "A-1"}); err != nil {
		fmt.Println(err)
	}
	held, err := client.Claim(ctx, OrderTimeout.Name(), bide.ClaimOptions{})
	for _, h := range held {
		err = h.Bury(ctx, errors.New("no such customer"))
	}
	if err != nil {
		fmt.Println(err)
	}

	for m, err := range OrderTimeout.Messages(ctx, client, storage.Dead) {
		fmt.Println(m.Body.Number, m.Reason, err)
	}
	redriven, err := client.Redrive(ctx, OrderTimeout.Name(), storage.Filter{})
	fmt.Println(redriven.Count, err)
	// Output:
	// A-1 no such customer <nil>
	// 1 <nil>
}

// A handler decides with its error what becomes of the message.
func ExampleHandler() {
	gatewayDown := errors.New("gateway is down")
	handler := func(ctx context.Context, d *bide.Delivery[Order]) error {
		switch {
		case d.Body.Number == "":
			return bide.DeadLetter(errors.New("an order has a number")) // no attempt can ever work
		case d.Attempt == 1:
			return fmt.Errorf("refund: %w", gatewayDown) // again after the consumer's backoff
		case d.Attempt == 2:
			return bide.RetryIn(time.Hour, gatewayDown) // again when it makes sense
		case time.Now().Weekday() == time.Sunday:
			return bide.Snooze(24 * time.Hour) // not now; this is no failed attempt
		}
		return nil // done
	}
	consumer := bide.NewConsumer(bide.NewClient(memstore.New(memstore.Options{}), bide.ClientConfig{}), bide.ConsumerConfig{})
	OrderTimeout.Handle(consumer, handler)
}

// Queues share the handlers of a consumer by weight; what one does not need goes to the others.
func ExampleConsumer() {
	client := bide.NewClient(memstore.New(memstore.Options{}), bide.ClientConfig{})
	consumer := bide.NewConsumer(client, bide.ConsumerConfig{
		Concurrency:  32,
		Queues:       map[string]int{"order.timeout": 3, "report": 1},
		Lease:        time.Minute,
		Timeout:      10 * time.Minute,
		DrainTimeout: 20 * time.Second,
		Logger:       slog.New(slog.DiscardHandler),
	})
	OrderTimeout.Handle(consumer, func(ctx context.Context, d *bide.Delivery[Order]) error { return nil })
	consumer.Handle("report", func(ctx context.Context, d *bide.Delivery[[]byte]) error { return nil })

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	fmt.Println(consumer.Run(ctx)) // in a program ctx ends with a signal
	// Output: <nil>
}

// A handler that has lost its lease may go on for a moment. Where that would do harm, what it
// writes to compares tokens: they only grow.
func ExampleDelivery_Token() {
	ledger := map[string]int64{} // highest token seen, by order
	write := func(order string, token int64) error {
		if token < ledger[order] {
			return errors.New("somebody else has the order now")
		}
		ledger[order] = token
		return nil
	}

	ctx := context.Background()
	client := bide.NewClient(memstore.New(memstore.Options{}), bide.ClientConfig{})
	if _, err := OrderTimeout.Enqueue(ctx, client, Order{Number: "A-1"}); err != nil {
		fmt.Println(err)
	}
	var held []bide.Held
	for range 2 { // the first consumer stands still until its lease has ended
		got, err := client.Claim(ctx, OrderTimeout.Name(), bide.ClaimOptions{Lease: time.Millisecond})
		if err != nil {
			fmt.Println(err)
		}
		held = append(held, got...)
		<-time.After(5 * time.Millisecond)
	}
	fmt.Println(write("A-1", held[1].Token()))
	fmt.Println(write("A-1", held[0].Token()))
	// Output:
	// <nil>
	// somebody else has the order now
}

// Messages can be claimed and settled by hand, without a consumer.
func ExampleClient_Deliveries() {
	ctx := context.Background()
	client := bide.NewClient(memstore.New(memstore.Options{}), bide.ClientConfig{})
	_, err := client.EnqueueMany(ctx, "mail", []bide.Message{{Body: []byte("hello")}, {Body: []byte("bye")}})
	if err != nil {
		fmt.Println(err)
	}
	for h, err := range client.Deliveries(ctx, "mail", bide.ClaimOptions{Lease: time.Minute}) {
		if err != nil {
			fmt.Println(err)
			break
		}
		fmt.Printf("%s, %v\n", h.Body, h.Ack(ctx))
		if string(h.Body) == "bye" {
			break
		}
	}
	// Output:
	// hello, <nil>
	// bye, <nil>
}

// Middleware wraps the handlers of a queue, or of a consumer.
func ExampleMiddleware() {
	timed := func(next bide.Handler) bide.Handler {
		return func(ctx context.Context, d *bide.Delivery[[]byte]) error {
			begun := time.Now()
			err := next(ctx, d)
			slog.InfoContext(ctx, "handled", "queue", d.Queue, "id", d.ID, "took", time.Since(begun), "error", err)
			return err
		}
	}
	client := bide.NewClient(memstore.New(memstore.Options{}), bide.ClientConfig{})
	consumer := bide.NewConsumer(client, bide.ConsumerConfig{Middleware: []bide.Middleware{timed}})
	OrderTimeout.Handle(consumer, func(ctx context.Context, d *bide.Delivery[Order]) error { return nil })
}
