// SPDX-License-Identifier: Apache-2.0

// Command subscribers tells everybody who wants to know that an order was paid. Each subscriber has a
// queue of its own: it gets every message, fails and retries by itself, and holds nobody else up.
// Publishing again does no harm, and who subscribes late gets what is published from then on.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/examples/internal/stage"
)

type order struct {
	Number string `json:"number"`
	Cents  int    `json:"cents"`
}

var orderPaid = bide.NewTopic[order]("order.paid")

type example struct {
	orders int
	retry  time.Duration
}

func main() {
	var e example
	flag.IntVar(&e.orders, "orders", 20, "orders that are paid")
	flag.DurationVar(&e.retry, "retry", time.Second, "first wait of a subscriber that failed")
	stage.Main(e.run)
}

func (e example) run(ctx context.Context, out io.Writer, client *bide.Client) error {
	var told stage.Ledger
	consumer := bide.NewConsumer(client, bide.ConsumerConfig{Backoff: bide.Exponential(e.retry, time.Minute)})
	for _, name := range []string{"paid.mail", "paid.stock", "paid.coupons"} {
		bide.NewQueue[order](name).Handle(consumer, func(_ context.Context, d *bide.Delivery[order]) error {
			if name == "paid.stock" && d.Attempt < 3 {
				return errors.New("the warehouse does not answer")
			}
			told.Note(name + " of " + d.Body.Number)
			return nil
		})
	}
	stop := stage.Start(ctx, consumer)
	defer func() { _ = stop() }()

	queues, err := client.Bind(ctx, orderPaid.Name(), "paid.mail", "paid.stock")
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "subscribed:", strings.Join(queues, ", "))
	for n := range e.orders {
		for range 2 { // once more, as after an answer that was lost
			if err := pay(ctx, client, n); err != nil {
				return err
			}
		}
	}
	if err := errors.Join(told.Until(ctx, 2*e.orders), told.Once(2*e.orders)); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d orders paid, each told once to everybody; stock took three attempts\n", e.orders)

	if _, err := client.Bind(ctx, orderPaid.Name(), "paid.coupons"); err != nil {
		return err
	}
	if _, err := client.Unbind(ctx, orderPaid.Name(), "paid.mail"); err != nil {
		return err
	}
	if err := pay(ctx, client, e.orders); err != nil {
		return err
	}
	err = told.Until(ctx, 2*e.orders+2)
	last := fmt.Sprintf(" of order-%d", e.orders)
	fmt.Fprintf(out, "one more: mail %d, stock %d, coupons %d\n",
		told.Times("paid.mail"+last), told.Times("paid.stock"+last), told.Times("paid.coupons"+last))
	return errors.Join(err, stop(), told.Once(2*e.orders+2))
}

func pay(ctx context.Context, client *bide.Client, n int) error {
	number := fmt.Sprintf("order-%d", n)
	_, err := orderPaid.Publish(ctx, client, order{Number: number, Cents: 100 * n}, bide.ID(number), bide.MaxAttempts(5))
	return err
}
