// SPDX-License-Identifier: Apache-2.0

package bide_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/internal/assert"
)

func TestOneOfTwoAcksWorks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		engine.takes(settle, time.Second)
		client := bide.NewClient(engine, bide.ClientConfig{Flights: 1})
		put(t, client, "first")
		put(t, client, "second")
		held, err := client.Claim(t.Context(), "orders", bide.ClaimOptions{Limit: 2})
		assert.NoError(t, err)

		errs := make(chan error, 3)
		go func() { errs <- held[0].Ack(t.Context()) }()
		synctest.Wait()
		for range 2 { // travel together
			go func() { errs <- held[1].Ack(t.Context()) }()
		}
		worked, lost := 0, 0
		for range 3 {
			switch err := <-errs; {
			case err == nil:
				worked++
			case errors.Is(err, bide.ErrLeaseLost) && !errors.Is(err, bide.ErrUnknown):
				lost++
			}
		}
		assert.Equal(t, []int{worked, lost}, []int{2, 1})
		assert.Equal(t, total(t, client).Acked, 2)
		assert.Equal(t, engine.calls(settle), []int{1, 2})
	})
}
