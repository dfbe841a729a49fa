// SPDX-License-Identifier: Apache-2.0

// Command game-events reports what happens in many games, of which few are hot and most are quiet. Each
// game has a queue of bounded length, in which the newest events stay; they are reported in batches of
// one game, while they are fresh; games take turns, and hot ones have a consumer of their own.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/examples/internal/stage"
	"github.com/bidemq/bide/storage"
)

type event struct{ Game, What string }

var gameEvents = bide.NewQueue[event]("game.events")

type example struct {
	games, events, bound int
	idle                 time.Duration
}

func main() {
	var e example
	flag.IntVar(&e.games, "games", 2000, "games")
	flag.IntVar(&e.events, "events", 40_000, "events of all games")
	flag.IntVar(&e.bound, "bound", 1000, "events of a game that wait at most")
	flag.DurationVar(&e.idle, "idle", time.Second, "what waits of a game goes when the game is idle for so long")
	stage.Main(e.run)
}

func (e example) run(ctx context.Context, out io.Writer, client *bide.Client) error {
	r := report{turns: map[string]int{}}
	configure := func(edit storage.ConfigEdit) error {
		_, err := client.Configure(ctx, gameEvents.Name(), edit)
		return err
	}
	err := configure(storage.ConfigEdit{
		MaxPerKey: &e.bound, Overflow: new(storage.DropOldest), ExpireIn: new(3 * time.Minute), KeyIdle: &e.idle,
	})
	// Nobody reports: what waits of idle games goes, and they with it.
	if err = errors.Join(err, r.send(ctx, client, slices.Repeat([]int{0, 1, 2, 3, 4}, 20)), r.untilEmpty(ctx, client)); err != nil {
		return err
	}
	fmt.Fprintf(out, "idle: %d events of 5 games are gone, %d games are left\n", r.stats.Total.Expired, r.stats.Keys)

	// An event of every game, and then most of a few.
	tail := rand.NewZipf(rand.New(rand.NewPCG(1, 2)), 1.2, 1, uint64(e.games-1))
	games := make([]int, e.events)
	for i := range games {
		if games[i] = i; i >= e.games {
			games[i] = int(tail.Uint64())
		}
	}
	err = errors.Join(configure(storage.ConfigEdit{KeyIdle: new(10 * time.Minute)}), r.send(ctx, client, games))
	if err != nil {
		return err
	}

	for k, bad := range client.Keys(ctx, gameEvents.Name(), storage.KeyFilter{By: storage.Largest, Limit: 3}) {
		err = errors.Join(err, bad)
		r.hot = append(r.hot, k.Key)
	}
	hot := bide.NewConsumer(client, bide.ConsumerConfig{Concurrency: 2})
	gameEvents.Only(r.hot...).HandleBatch(hot, r.handler(true), bide.BatchConfig{Max: 128})
	rest := bide.NewConsumer(client, bide.ConsumerConfig{Concurrency: 2})
	gameEvents.Except(r.hot...).HandleBatch(rest, r.handler(false), bide.BatchConfig{Max: 128})
	stop := stage.Start(ctx, hot, rest)
	err = errors.Join(err, r.untilEmpty(ctx, client), stop(), r.wrong)

	n := r.stats.Total
	fmt.Fprintf(out, "sent %d = reported %d + dropped %d + expired %d\n", r.sent, r.reported, r.dropped, n.Expired)
	fmt.Fprintf(out, "hot: %v, %d batches; the rest: %d games, the last of them served when none had more than %d batches\n",
		r.hot, r.hotBatches, len(r.turns), r.mostTurns)
	if r.sent != r.reported+r.dropped+int(n.Expired) || r.dropped != int(n.Dropped) || len(r.turns) != e.games-len(r.hot) {
		return errors.Join(err, errors.New("events or games are missing"))
	}
	return err
}
