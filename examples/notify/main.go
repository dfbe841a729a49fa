// SPDX-License-Identifier: Apache-2.0

// Command notify is the asynchronous queue: many producers append notifications, one group of
// consumers takes them off, each of them once. Where nothing waits nobody asks, and what comes then
// is there at once.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/examples/internal/stage"
)

type notification struct {
	User string `json:"user"`
	Text string `json:"text"`
}

var notifications = bide.NewQueue[notification]("notify.notifications")

type example struct {
	producers, each, consumers int
	idle                       time.Duration
}

func main() {
	var e example
	flag.IntVar(&e.producers, "producers", 8, "who send at the same time")
	flag.IntVar(&e.each, "each", 100, "notifications of a producer")
	flag.IntVar(&e.consumers, "consumers", 3, "in the group")
	flag.DurationVar(&e.idle, "idle", 3*time.Second, "how long nothing happens at the end")
	stage.Main(e.run)
}

func (e example) run(ctx context.Context, out io.Writer, client *bide.Client) error {
	var sent stage.Ledger
	var asked atomic.Int64
	var lag atomic.Int64
	consumers := make([]*bide.Consumer, e.consumers)
	for i := range consumers {
		consumers[i] = bide.NewConsumer(client, bide.ConsumerConfig{
			Backoff: bide.Exponential(10*time.Millisecond, time.Second),
			Hooks:   bide.Hooks{OnClaim: func(string, int, time.Duration, error) { asked.Add(1) }},
		})
		notifications.Handle(consumers[i], func(_ context.Context, d *bide.Delivery[notification]) error {
			if d.Body.User == "user 0 of 0" && d.Attempt == 1 {
				return errors.New("mail server hung up") // ends neither the consumer nor the message
			}
			sent.Note(d.ID)
			lag.Store(int64(d.Lag))
			return nil
		})
	}
	stop := stage.Start(ctx, consumers...)
	defer func() { _ = stop() }()

	var producing sync.WaitGroup
	errs := make([]error, e.producers)
	for p := range e.producers {
		producing.Go(func() {
			for n := range e.each { // equal texts do not overwrite each other: each gets an id
				hello := notification{User: fmt.Sprintf("user %d of %d", n, p), Text: "your parcel is on its way"}
				if _, err := notifications.Enqueue(ctx, client, hello); err != nil {
					errs[p] = err
					return
				}
			}
		})
	}
	producing.Wait()
	total := e.producers * e.each
	if err := errors.Join(append(errs, sent.Until(ctx, total))...); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d producers, %d consumers: %d notifications sent\n", e.producers, e.consumers, total)

	before := asked.Load()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(e.idle):
	}
	fmt.Fprintf(out, "idle for %s: the store was asked %d times\n", e.idle, asked.Load()-before)
	if _, err := notifications.Enqueue(ctx, client, notification{User: "late", Text: "it has arrived"}); err != nil {
		return err
	}
	err := sent.Until(ctx, total+1)
	fmt.Fprintf(out, "one more: taken after %s\n", time.Duration(lag.Load()))
	return errors.Join(err, stop(), sent.Once(total+1))
}
