// SPDX-License-Identifier: Apache-2.0

package bide_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/memstore"
)

func ExampleClient_TryLock() {
	ctx := context.Background()
	client := bide.NewClient(memstore.New(memstore.Options{}), bide.ClientConfig{})

	lock, err := client.TryLock(ctx, "nightly-report", bide.LockConfig{})
	if err != nil {
		fmt.Println(err) // errors.Is(err, bide.ErrLocked): somebody else is at it
		return
	}
	// Work with lock.Context(), which ends if the lock is lost, and let what you write to compare
	// lock.Token().
	_, err = client.TryLock(ctx, "nightly-report", bide.LockConfig{})
	fmt.Println("locked:", errors.Is(err, bide.ErrLocked))
	fmt.Println("unlock:", lock.Unlock(ctx))
	// Output:
	// locked: true
	// unlock: <nil>
}

func ExampleExclusive() {
	ctx, stop := context.WithCancel(context.Background())
	client := bide.NewClient(memstore.New(memstore.Options{}), bide.ClientConfig{})
	consumer := bide.NewConsumer(client, bide.ConsumerConfig{})

	account := func(d *bide.Delivery[[]byte]) string { return "account " + d.Key }
	withdrawals := bide.NewQueue[int]("withdrawals")
	withdrawals.Handle(consumer, func(ctx context.Context, d *bide.Delivery[int]) error {
		fmt.Printf("withdraw %d under the lock of %q\n", d.Body, bide.LockOf(ctx).Name())
		stop()
		return nil
	}, bide.Exclusive(client, account, bide.ExclusiveConfig{}))

	if _, err := withdrawals.Enqueue(ctx, client, 20, bide.Key("42")); err != nil {
		fmt.Println(err)
	}
	if err := consumer.Run(ctx); err != nil {
		fmt.Println(err)
	}
	// Output:
	// withdraw 20 under the lock of "account 42"
}

func ExampleTopic_Publish() {
	ctx := context.Background()
	client := bide.NewClient(memstore.New(memstore.Options{}), bide.ClientConfig{})

	if _, err := client.Bind(ctx, "order.paid", "mail", "stock"); err != nil {
		fmt.Println(err)
	}
	paid := bide.NewTopic[string]("order.paid")
	published, err := paid.Publish(ctx, client, "order 42", bide.ID("order-42"))
	if err != nil {
		fmt.Println(err) // publish again under published.ID: nothing is stored twice
	}
	for _, to := range published.Queues {
		fmt.Println(to.Queue, to.ID, to.Outcome)
	}
	// Output:
	// mail order-42 stored
	// stock order-42 stored
}
