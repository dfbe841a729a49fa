// SPDX-License-Identifier: Apache-2.0

package bide_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/storage"
)

func TestRescheduleNeedsATime(t *testing.T) {
	for name, opt := range map[string]bide.Option{
		"nothing":       func(*bide.Message) {},
		"priority 0":    bide.Priority(0),
		"no id":         bide.ID(""),
		"a body":        func(m *bide.Message) { m.Body = []byte("x") },
		"a body too":    func(m *bide.Message) { m.Body, m.Delay = []byte("x"), time.Minute },
		"the zero time": bide.At(time.Time{}),
		"two times":     func(m *bide.Message) { m.Due, m.Delay = time.Now(), time.Minute },
		"nil":           nil,
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) {
				put(t, client, "a", bide.In(time.Hour))
				assert.ErrorIs(t, orders.Reschedule(t.Context(), client, "a", opt), bide.ErrInvalid)
				r, err := client.Get(t.Context(), "orders", "a")
				assert.NoError(t, err)
				assert.Equal(t, r.Due, time.Now().Add(time.Hour))
			})
		})
	}
}

func TestRescheduleToNow(t *testing.T) {
	for name, opt := range map[string]bide.Option{
		"in nothing":         bide.In(0),
		"at a past time":     bide.At(time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)),
		"by the field alone": func(m *bide.Message) { m.Due = time.Now() },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) {
				put(t, client, "a", bide.In(time.Hour))
				assert.NoError(t, orders.Reschedule(t.Context(), client, "a", opt))
				r, err := client.Get(t.Context(), "orders", "a")
				assert.NoError(t, err)
				assert.Equal(t, r.State, storage.Ready)
			})
		})
	}
}

func TestZeroTimeAndNilOptionAreRefused(t *testing.T) {
	bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) {
		for _, opt := range []bide.Option{bide.At(time.Time{}), nil} {
			res, err := orders.Enqueue(t.Context(), client, order{}, opt)
			assert.ErrorIs(t, err, bide.ErrInvalid)
			assert.True(t, res.ID != "")
		}
		assert.Equal(t, total(t, client), storage.Counters{})
	})
}

func TestTimeOfTheMessageWinsOverTheDefault(t *testing.T) {
	at := func(d time.Duration) func(*bide.Message) { return func(m *bide.Message) { m.Due = time.Now().Add(d) } }
	in := func(d time.Duration) func(*bide.Message) { return func(m *bide.Message) { m.Delay = d } }
	for i, c := range []struct {
		standard bide.Option
		edit     func(*bide.Message)
	}{
		{bide.In(time.Hour), at(time.Minute)},
		{bide.In(time.Hour), in(time.Minute)},
		{at(time.Hour), in(time.Minute)},
		{at(time.Hour), at(time.Minute)},
		{bide.In(time.Minute), func(*bide.Message) {}},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) {
				queue := bide.NewQueueWith("orders", bide.QueueOptions[order]{Defaults: []bide.Option{c.standard}})
				res, err := queue.EnqueueMany(t.Context(), client, make([]order, 1), func(_ order, m *bide.Message) { c.edit(m) })
				assert.NoError(t, err)
				assert.Equal(t, res[0].Due, time.Now().Add(time.Minute))
				one, err := queue.Enqueue(t.Context(), client, order{}, c.edit)
				assert.NoError(t, err)
				assert.Equal(t, one.Due, time.Now().Add(time.Minute))
			})
		})
	}
}
