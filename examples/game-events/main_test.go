// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/examples/internal/stagetest"
	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/internal/redistest"
	"github.com/bidemq/bide/storage"
)

// That no batch is above 128 or of two games is checked by the example itself.
func TestGameEvents(t *testing.T) {
	e := example{games: 200, events: 5000, bound: 400}
	stagetest.OnEveryEngine(t, e.run, func(t *testing.T, client *bide.Client, printed string) {
		lines := strings.Split(printed, "\n")
		var sent, games, reported, dropped int
		_, err := fmt.Sscanf(lines[0], "sent %d events of %d games = reported %d + dropped %d", &sent, &games, &reported, &dropped)
		assert.NoError(t, err, printed)
		assert.Equal(t, []int{sent, games, reported + dropped}, []int{5000, 200, 5000})
		assert.True(t, dropped > 0 && reported > 0, printed)
		assert.Equal(t, lines[1], "the hot games are [game-0000 game-0001 game-0002]")
		st, err := client.Stats(t.Context(), gameEvents.Name())
		assert.NoError(t, err)
		assert.Equal(t, []int64{st.Keys, st.Total.Retried, st.Total.Lapsed, st.Total.Expired}, []int64{0, 0, 0, 0})
	})
}

// What nobody has reported for three minutes is not reported any more, and a game without events for
// ten is gone. The example is run with these times; here they are short.
func TestIdleAndStaleEventsGo(t *testing.T) {
	short := func(ctx context.Context, _ io.Writer, client *bide.Client) error {
		_, err := client.Configure(ctx, gameEvents.Name(), storage.ConfigEdit{ExpireIn: new(50 * time.Millisecond), KeyIdle: new(time.Hour)})
		assert.NoError(t, err)
		for i := range 3 {
			_, err := gameEvents.Enqueue(ctx, client, event{"quiet"}, bide.Key(fmt.Sprint("quiet", i)))
			assert.NoError(t, err)
		}
		_, err = client.Configure(ctx, gameEvents.Name(), storage.ConfigEdit{ExpireIn: new(time.Hour), KeyIdle: new(100 * time.Millisecond)})
		assert.NoError(t, err)
		_, err = gameEvents.Enqueue(ctx, client, event{"idle"}, bide.Key("idle"))
		return err
	}
	stagetest.OnEveryEngine(t, short, func(t *testing.T, client *bide.Client, _ string) {
		redistest.Until(t, "all events are gone", func() bool {
			st, err := client.Stats(t.Context(), gameEvents.Name())
			assert.NoError(t, err)
			return st.Total.Expired == 4 && st.Keys == 0
		})
	})
}
