// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/storage"
)

// report counts what becomes of the events, and checks what is promised.
type report struct {
	sent, dropped int
	stats         storage.Stats // the latest
	hot           []string

	mu         sync.Mutex
	reported   int
	hotBatches int
	turns      map[string]int // batches of each game that is not hot
	mostTurns  int            // of a game, when the last game had its first
	wrong      error
}

// send enqueues an event of each game named, by its number.
func (r *report) send(ctx context.Context, client *bide.Client, games []int) error {
	for chunk := range slices.Chunk(games, 1000) {
		events := make([]event, len(chunk))
		for i, game := range chunk {
			events[i] = event{Game: fmt.Sprintf("game-%04d", game), What: "goal"}
		}
		results, err := gameEvents.EnqueueMany(ctx, client, events, func(e event, m *bide.Message) { m.Key = e.Game })
		if err != nil {
			return err
		}
		r.sent += len(results)
		for _, result := range results {
			r.dropped += len(result.Dropped) // the producer learns of it
		}
	}
	return nil
}

// handler reports a batch, which is of one game.
func (r *report) handler(hot bool) func(context.Context, string, []*bide.Delivery[event]) error {
	return func(_ context.Context, game string, ds []*bide.Delivery[event]) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.reported += len(ds)
		mixed := slices.ContainsFunc(ds, func(d *bide.Delivery[event]) bool { return d.Body.Game != game })
		if mixed || len(ds) > 128 || hot != slices.Contains(r.hot, game) {
			r.wrong = fmt.Errorf("a batch of %d events of %s, mixed %t, at the consumer of hot games %t", len(ds), game, mixed, hot)
		}
		if hot {
			r.hotBatches++
			return nil
		}
		r.turns[game]++
		if r.turns[game] == 1 {
			for _, n := range r.turns {
				r.mostTurns = max(r.mostTurns, n)
			}
		}
		return nil
	}
}

// untilEmpty waits until nothing waits or runs.
func (r *report) untilEmpty(ctx context.Context, client *bide.Client) (err error) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		r.stats, err = client.Stats(ctx, gameEvents.Name())
		if err != nil || r.stats.Delayed+r.stats.Ready+r.stats.Leased == 0 {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
