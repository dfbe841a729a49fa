// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/examples/internal/stagetest"
	"github.com/bidemq/bide/internal/assert"
)

func TestOrders(t *testing.T) {
	e := example{orders: 30, timeout: 300 * time.Millisecond, review: 400 * time.Millisecond}
	stagetest.OnEveryEngine(t, e.run, func(t *testing.T, client *bide.Client, printed string) {
		assert.Equal(t, printed, `30 orders placed, 10 paid, 20 wait
60 canceled, reviewed or refunded, each once and none early
`)
		for _, queue := range []*bide.Queue[order]{unpaid, unseen, uncalled} {
			s, err := client.Stats(t.Context(), queue.Name())
			assert.NoError(t, err)
			got := []int64{s.Delayed, s.Ready, s.Leased, s.Dead, s.Total.Canceled, s.Total.Retried, s.Total.Acked}
			assert.Equal(t, got, []int64{0, 0, 0, 0, 10, 2, 20}, queue.Name())
		}
	})
}
