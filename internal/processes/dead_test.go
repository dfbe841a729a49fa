// SPDX-License-Identifier: Apache-2.0

package processes

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/internal/redistest"
)

// tellAndHang leaves a kill the time to come while OnDead is at it.
func tellAndHang(ctx context.Context, dead bide.Dead) error {
	fmt.Fprintln(os.Stdout, "telling", dead.ID)
	<-ctx.Done()
	return context.Cause(ctx)
}

// A process is killed with a message in hand, whose last attempt that was, and another one while it
// tells of a death: both deaths are told by who comes next.
func TestDeathsAreToldOverKills(t *testing.T) {
	server := redistest.Start(t)
	client := open(t, server.URL())
	due := dues{}
	enqueue := func(id string) {
		due[id] = time.Now().Add(-time.Minute)
		_, err := queue.Enqueue(t.Context(), client, 0, bide.ID(id), bide.MaxAttempts(1))
		assert.NoError(t, err)
	}
	holds := start(t, server.URL(), "hold, and tell", due)
	enqueue("held")
	assert.True(t, holds.line(t, "started") != nil, "the consumer ended by itself")
	holds.kill(t)

	fails := start(t, server.URL(), "fail, and tell", due)
	enqueue("failed")
	assert.True(t, fails.line(t, "telling") != nil, "the consumer ended by itself")
	fails.kill(t)

	var mu sync.Mutex
	told := map[string]string{}
	consumer := bide.NewConsumer(client, bide.ConsumerConfig{OnDead: func(_ context.Context, dead bide.Dead) error {
		mu.Lock()
		defer mu.Unlock()
		told[dead.ID] = dead.Reason
		return nil
	}, OnDeadEvery: 100 * time.Millisecond})
	queue.Handle(consumer, func(context.Context, *bide.Delivery[int]) error { return nil })
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- consumer.Run(ctx) }()
	redistest.Until(t, "both are told", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(told) == 2
	})
	stop()
	assert.NoError(t, <-ran)
	assert.Equal(t, told, map[string]string{"held": "lease ended", "failed": "boom"})
}
