// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/examples/internal/stagetest"
	"github.com/bidemq/bide/internal/assert"
)

func TestSubscribers(t *testing.T) {
	e := example{orders: 10, retry: 10 * time.Millisecond}
	stagetest.OnEveryEngine(t, e.run, func(t *testing.T, client *bide.Client, printed string) {
		assert.Equal(t, printed, `subscribed: paid.mail, paid.stock
10 orders paid, each told once to everybody; stock took three attempts
one more: mail 0, stock 1, coupons 1
`)
		for queue, want := range map[string][]int64{
			"paid.mail": {10, 10, 0}, "paid.stock": {11, 33, 22}, "paid.coupons": {1, 1, 0},
		} {
			s, err := client.Stats(t.Context(), queue)
			assert.NoError(t, err)
			assert.Equal(t, []int64{s.Total.Acked, s.Total.Claimed, s.Total.Retried}, want, queue)
		}
	})
}
