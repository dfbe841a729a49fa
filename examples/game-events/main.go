// SPDX-License-Identifier: Apache-2.0

// Command game-events reports what happens in many games, of which few are hot and most are quiet. Of
// each game the newest events wait, up to a bound; they are reported in batches of one game, while they
// are fresh; games take turns, and hot ones have a consumer of their own.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/examples/internal/stage"
	"github.com/bidemq/bide/storage"
)

type event struct{ Game string }

var gameEvents = bide.NewQueue[event]("game.events")

type example struct{ games, events, bound int }

func main() {
	var e example
	flag.IntVar(&e.games, "games", 2000, "games")
	flag.IntVar(&e.events, "events", 40_000, "events of all games")
	flag.IntVar(&e.bound, "bound", 1000, "events of a game that wait at most")
	stage.Main(e.run)
}

func (e example) run(ctx context.Context, out io.Writer, client *bide.Client) error {
	_, err := client.Configure(ctx, gameEvents.Name(), storage.ConfigEdit{
		MaxPerKey: &e.bound, Overflow: new(storage.DropOldest), ExpireIn: new(3 * time.Minute), KeyIdle: new(10 * time.Minute),
	})
	if err != nil {
		return err
	}
	events := make([]event, e.events) // one of every game, and then most of a few
	tail := rand.NewZipf(rand.New(rand.NewPCG(1, 2)), 1.2, 1, uint64(e.games-1))
	for i := range events {
		game := uint64(i)
		if i >= e.games {
			game = tail.Uint64()
		}
		events[i].Game = fmt.Sprintf("game-%04d", game)
	}
	dropped := 0
	for some := range slices.Chunk(events, 1000) {
		results, err := gameEvents.EnqueueMany(ctx, client, some, func(e event, m *bide.Message) { m.Key = e.Game })
		if err != nil {
			return err
		}
		for _, r := range results {
			dropped += len(r.Dropped) // the producer learns of it
		}
	}

	var hot []string
	for k, bad := range client.Keys(ctx, gameEvents.Name(), storage.KeyFilter{By: storage.Largest, Limit: 3}) {
		hot, err = append(hot, k.Key), errors.Join(err, bad)
	}
	var mu sync.Mutex
	reported, games := 0, map[string]int{}
	report := func(_ context.Context, game string, ds []*bide.Delivery[event]) error {
		mu.Lock()
		defer mu.Unlock()
		reported += len(ds)
		games[game]++
		if len(ds) > 128 || slices.ContainsFunc(ds, func(d *bide.Delivery[event]) bool { return d.Body.Game != game }) {
			return bide.DeadLetter(errors.New("a batch is too large, or of several games"))
		}
		return nil
	}
	forHot := bide.NewConsumer(client, bide.ConsumerConfig{Concurrency: 2})
	gameEvents.Only(hot...).HandleBatch(forHot, report, bide.BatchConfig{Max: 128})
	forRest := bide.NewConsumer(client, bide.ConsumerConfig{Concurrency: 2})
	gameEvents.Except(hot...).HandleBatch(forRest, report, bide.BatchConfig{Max: 128})
	stop := stage.Start(ctx, forHot, forRest)
	st, bad := stage.UntilEmpty(ctx, client, gameEvents.Name())
	err = errors.Join(err, bad, stop())
	fmt.Fprintf(out, "sent %d events of %d games = reported %d + dropped %d\n", e.events, len(games), reported, dropped)
	fmt.Fprintf(out, "the hot games are %v\n", hot)
	if e.events != reported+dropped || len(games) != e.games || st.Dead > 0 || int(st.Total.Dropped) != dropped {
		err = errors.Join(err, errors.New("events or games are missing"))
	}
	return err
}
