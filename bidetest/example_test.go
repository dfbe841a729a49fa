// SPDX-License-Identifier: Apache-2.0

package bidetest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/bidetest"
)

// Order is what the shop sells.
type Order struct{ Number string }

// OrderTimeout gets a message for every order that is placed, due when it has to be paid.
var OrderTimeout = bide.NewQueue[Order]("order.timeout")

// Shop is the program under test.
type Shop struct {
	client   *bide.Client
	gateway  error // what the payment gateway answers
	canceled []string
}

// Place takes an order, which is to be paid within two days.
func (s *Shop) Place(ctx context.Context, o Order) error {
	_, err := OrderTimeout.Enqueue(ctx, s.client, o, bide.ID(o.Number), bide.In(48*time.Hour))
	return err
}

// Timeout cancels an order that was not paid.
func (s *Shop) Timeout(_ context.Context, d *bide.Delivery[Order]) error {
	if s.gateway != nil && d.Attempt < 3 {
		return s.gateway
	}
	s.canceled = append(s.canceled, d.Body.Number)
	return nil
}

// testTimeout is an ordinary test.
func testTimeout(t *testing.T) {
	bidetest.Run(t, func(t *testing.T, b *bidetest.Bubble) {
		shop := &Shop{client: b.Client, gateway: errors.New("gateway is down")}
		bidetest.Handle(b, OrderTimeout, shop.Timeout)

		if err := shop.Place(t.Context(), Order{Number: "A-1"}); err != nil {
			t.Fatal(err)
		}
		b.WantEnqueued(OrderTimeout, "A-1", 48*time.Hour)

		b.Pass(47 * time.Hour)
		b.WantSettled(OrderTimeout, "A-1") // nothing yet

		b.Pass(2 * time.Hour)
		b.WantSettled(OrderTimeout, "A-1",
			bidetest.Retried(48*time.Hour),
			bidetest.Retried(48*time.Hour+5*time.Second),
			bidetest.Acked(48*time.Hour+15*time.Second),
		)
	})
}

// A handler that is due after two days is tested in microseconds, with the instants of its retries.
func Example() {
	_ = testing.InternalTest{Name: "TestTimeout", F: testTimeout} // in a test file: func TestTimeout
}
