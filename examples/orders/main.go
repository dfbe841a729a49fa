// SPDX-License-Identifier: Apache-2.0

// Command orders is what shops do with time: an order that is not paid within half an hour is
// canceled, one that is not reviewed within two days gets the default review, and a call that the
// doctor does not make within half an hour is refunded. Whoever pays, reviews or calls in time
// removes the message by its name; what fails is tried again, and a record says what was done.
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
	"github.com/bidemq/bide/storage"
)

type order struct {
	Number string `json:"number"`
	Cents  int    `json:"cents"`
}

var (
	unpaid   = bide.NewQueue[order]("orders.unpaid")
	unseen   = bide.NewQueue[order]("orders.review")
	uncalled = bide.NewQueue[order]("orders.doctor")
)

type example struct {
	orders          int
	timeout, review time.Duration
}

func main() {
	var e example
	flag.IntVar(&e.orders, "orders", 30, "placed in each of the three queues")
	flag.DurationVar(&e.timeout, "timeout", 2*time.Second, "to pay or to call; 30 minutes in real life")
	flag.DurationVar(&e.review, "review", 4*time.Second, "to review; 48 hours in real life")
	stage.Main(e.run)
}

func (e example) run(ctx context.Context, out io.Writer, client *bide.Client) error {
	for queue, timeout := range map[*bide.Queue[order]]time.Duration{unpaid: e.timeout, unseen: e.review, uncalled: e.timeout} {
		placed := make([]order, e.orders)
		for i := range placed {
			placed[i] = order{Number: fmt.Sprintf("%03d", i), Cents: 1999}
		}
		_, err := queue.EnqueueMany(ctx, client, placed, func(o order, m *bide.Message) { m.ID, m.Delay = o.Number, timeout })
		if err != nil {
			return err
		}
		for _, o := range placed[:e.orders/3] { // paid, reviewed, called in time
			if err := queue.Cancel(ctx, client, o.Number); err != nil {
				return err
			}
		}
	}
	last := fmt.Sprintf("%03d", e.orders-1) // this customer asked for more time
	if err := unpaid.Reschedule(ctx, client, last, bide.In(2*e.timeout)); err != nil {
		return err
	}
	waiting, err := client.Count(ctx, unpaid.Name(), storage.Filter{State: bide.Waiting})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d orders placed, %d paid, %d wait\n", e.orders, e.orders/3, waiting)

	var tried, done stage.Ledger // the record of consumption
	consumer := bide.NewConsumer(client, bide.ConsumerConfig{Backoff: bide.Exponential(10*time.Millisecond, time.Second)})
	for queue, what := range map[*bide.Queue[order]]string{unpaid: "cancel", unseen: "review", uncalled: "refund"} {
		queue.Handle(consumer, func(_ context.Context, d *bide.Delivery[order]) error {
			entry := what + " " + d.Body.Number
			if tried.Note(entry) == 1 && strings.HasSuffix(d.Body.Number, "5") {
				return errors.New("the shop does not answer") // back to the queue, by itself
			}
			if d.Lag < 0 {
				return fmt.Errorf("%s is early by %s", entry, -d.Lag)
			}
			done.Note(entry)
			return nil
		})
	}
	stop := stage.Start(ctx, consumer)
	total := 3 * (e.orders - e.orders/3)
	if err := errors.Join(done.Until(ctx, total), stop(), done.Once(total)); err != nil {
		return err
	}
	if tried.Times("cancel 000")+tried.Times("review 000")+tried.Times("refund 000") > 0 {
		return errors.New("what was removed in time was done")
	}
	fmt.Fprintf(out, "%d canceled, reviewed or refunded, each once and none early\n", total)
	return nil
}
