// SPDX-License-Identifier: Apache-2.0

package processes

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/internal/redistest"
	"github.com/bidemq/bide/storage"
)

// Consumers are killed at random moments, a hundred times: every message is handled all the same,
// and none early.
func TestKilledConsumersLoseNothing(t *testing.T) {
	kills := 100
	if testing.Short() {
		kills = 10
	}
	server := redistest.Start(t)
	client := open(t, server.URL())
	perKill := 40
	due := dues{}
	enqueue := func(round int) {
		for i := range perKill {
			r, err := queue.Enqueue(t.Context(), client, i, bide.ID(fmt.Sprintf("m%d-%d", round, i)),
				bide.In(time.Duration(rand.IntN(200))*time.Millisecond), bide.MaxAttempts(bide.Unlimited))
			assert.NoError(t, err)
			due[r.ID] = r.Due
		}
	}
	for round := range kills {
		enqueue(round)
		c := start(t, server.URL(), "handle", due)
		assert.True(t, c.line(t, "started") != nil, "the consumer ended by itself")
		for range rand.IntN(perKill) {
			c.line(t, "") // some events later
		}
		c.kill(t)
	}
	total := int64(kills * perKill)
	finish(t, client, due, func(st storage.Stats) bool { return st.Total.Acked == total })
	st, err := client.Stats(t.Context(), queue.Name())
	assert.NoError(t, err)
	assert.Equal(t, []int64{st.Total.Enqueued, st.Total.Acked, st.Dead, st.Delayed + st.Ready + st.Leased}, []int64{total, total, 0, 0})
	assert.True(t, st.Total.Lapsed > 0, "no kill hit a message in hand")
	t.Logf("%d messages, %d kills, %d leases ended, %d deliveries", total, kills, st.Total.Lapsed, st.Total.Claimed)
}

// finish runs a consumer that lives until the queue is as wanted.
func finish(t *testing.T, client *bide.Client, due dues, done func(storage.Stats) bool) {
	t.Helper()
	consumer := bide.NewConsumer(client, bide.ConsumerConfig{Concurrency: 16, Lease: lease})
	queue.Handle(consumer, func(_ context.Context, d *bide.Delivery[int]) error {
		if at := due[d.ID]; at.IsZero() || d.Claimed.Before(at) || time.Now().Before(at) {
			t.Errorf("%s came early, at %s, and was due %s", d.ID, d.Claimed, at)
		}
		return nil
	})
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- consumer.Run(ctx) }()
	redistest.Until(t, "every message is acknowledged", func() bool {
		st, err := client.Stats(t.Context(), queue.Name())
		assert.NoError(t, err)
		return done(st)
	})
	stop()
	assert.NoError(t, <-ran)
}
