// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/examples/internal/stagetest"
	"github.com/bidemq/bide/internal/assert"
)

// That all is accounted for, no batch is above 128 or of two games, and the hot consumer serves only
// hot games is checked by the example itself.
func TestGameEvents(t *testing.T) {
	e := example{games: 200, events: 5000, bound: 400, idle: 200 * time.Millisecond}
	stagetest.OnEveryEngine(t, e.run, func(t *testing.T, client *bide.Client, printed string) {
		lines := strings.Split(printed, "\n")
		assert.Equal(t, lines[0], "idle: 100 events of 5 games are gone, 0 games are left")
		var sent, reported, dropped, expired int
		_, err := fmt.Sscanf(lines[1], "sent %d = reported %d + dropped %d + expired %d", &sent, &reported, &dropped, &expired)
		assert.NoError(t, err, printed)
		assert.Equal(t, []int{sent, reported + dropped + expired, expired}, []int{5100, 5100, 100})
		assert.True(t, dropped > 0 && reported > 0, printed)
		assert.True(t, strings.HasPrefix(lines[2], "hot: [game-0000 game-0001 game-0002], "), printed)

		// Games take turns; two handlers may begin in another order than they were given theirs.
		var most int
		_, err = fmt.Sscanf(lines[2][strings.LastIndex(lines[2], "than"):], "than %d batches", &most)
		assert.NoError(t, err, printed)
		assert.True(t, most <= 2, printed)
		st, err := client.Stats(t.Context(), gameEvents.Name())
		assert.NoError(t, err)
		assert.Equal(t, []int64{st.Keys, st.Total.Retried, st.Total.Lapsed}, []int64{0, 0, 0})
	})
}
