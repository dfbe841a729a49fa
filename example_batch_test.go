// SPDX-License-Identifier: Apache-2.0

package bide_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/memstore"
	"github.com/bidemq/bide/storage"
)

// Event is the payload of the queue below.
type Event struct {
	Game string
	What string
}

// GameEvents are reported game by game.
var GameEvents = bide.NewQueue[Event]("game.events")

// The events of a game come together, and each can end in its own way.
func ExampleQueue_HandleBatch() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	client := bide.NewClient(memstore.New(memstore.Options{}), bide.ClientConfig{})
	for _, e := range []Event{{"chess", "check"}, {"go", "atari"}, {"chess", "mate"}, {"chess", "?"}} {
		if _, err := GameEvents.Enqueue(ctx, client, e, bide.Key(e.Game)); err != nil {
			fmt.Println(err)
		}
	}

	consumer := bide.NewConsumer(client, bide.ConsumerConfig{Concurrency: 1})
	GameEvents.HandleBatch(consumer, func(ctx context.Context, game string, ds []*bide.Delivery[Event]) error {
		for _, d := range ds {
			fmt.Println(game, d.Body.What)
			if d.Body.What == "?" {
				d.Decide(bide.DeadLetter(errors.New("no such event")))
			}
		}
		if game == "go" {
			cancel() // this example has two games
		}
		return nil // acks those that were not decided about
	}, bide.BatchConfig{Max: 128})
	if err := consumer.Run(ctx); err != nil {
		fmt.Println(err)
	}
	// Output:
	// chess check
	// chess mate
	// chess ?
	// go atari
}

// A hot key has handlers of its own, and the others do not wait behind it.
func ExampleQueue_Only() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	client := bide.NewClient(memstore.New(memstore.Options{}), bide.ClientConfig{})
	for _, game := range []string{"chess", "go", "chess"} {
		if _, err := GameEvents.Enqueue(ctx, client, Event{Game: game}, bide.Key(game)); err != nil {
			fmt.Println(err)
		}
	}

	var both sync.WaitGroup // this example has so many batches
	both.Add(2)
	consumer := bide.NewConsumer(client, bide.ConsumerConfig{}) // or a consumer, or a process, for each part
	GameEvents.Only("chess").HandleBatch(consumer, func(_ context.Context, _ string, ds []*bide.Delivery[Event]) error {
		fmt.Println(len(ds), "events of the hot game")
		both.Done()
		return nil
	}, bide.BatchConfig{})
	GameEvents.Except("chess").Handle(consumer, func(_ context.Context, d *bide.Delivery[Event]) error {
		fmt.Println("an event of", d.Key)
		both.Done()
		return nil
	})
	go func() {
		both.Wait()
		cancel()
	}()
	if err := consumer.Run(ctx); err != nil {
		fmt.Println(err)
	}
	// Unordered output:
	// 2 events of the hot game
	// an event of go
}

// In a queue of bounded length the oldest messages make room, and the producer learns of it.
func ExampleClient_Configure() {
	ctx := context.Background()
	client := bide.NewClient(memstore.New(memstore.Options{}), bide.ClientConfig{})
	_, err := client.Configure(ctx, GameEvents.Name(), storage.ConfigEdit{
		MaxPerKey: new(2), Overflow: new(storage.DropOldest), // the newest two of each game
		ExpireIn: new(3 * time.Minute), KeyIdle: new(time.Hour),
	})
	if err != nil {
		fmt.Println(err)
	}
	for i := range 3 {
		res, err := GameEvents.Enqueue(ctx, client, Event{Game: "chess"}, bide.Key("chess"), bide.ID(fmt.Sprint("move-", i)))
		fmt.Println(res.Outcome, res.Dropped, err)
	}
	// Output:
	// stored [] <nil>
	// stored [] <nil>
	// stored [move-0] <nil>
}

// Whatever kills a message, OnDead is told, at least once.
func ExampleConsumerConfig_onDead() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	client := bide.NewClient(memstore.New(memstore.Options{}), bide.ClientConfig{})
	consumer := bide.NewConsumer(client, bide.ConsumerConfig{
		OnDead: func(_ context.Context, dead bide.Dead) error {
			fmt.Println(dead.Queue, dead.ID, "died after", len(dead.History), "failure:", dead.Reason)
			cancel()
			return nil // an error would have it told again
		},
	})
	OrderTimeout.Handle(consumer, func(context.Context, *bide.Delivery[Order]) error {
		return bide.DeadLetter(errors.New("no such order"))
	})
	if _, err := OrderTimeout.Enqueue(ctx, client, Order{Number: "A-1"}, bide.ID("A-1")); err != nil {
		fmt.Println(err)
	}
	if err := consumer.Run(ctx); err != nil {
		fmt.Println(err)
	}
	// Output: order.timeout A-1 died after 1 failure: no such order
}
