// SPDX-License-Identifier: Apache-2.0

package bide_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/storage"
)

// touchy panics over a body that is no number.
type touchy int

func (v *touchy) UnmarshalJSON(b []byte) error {
	*v = []touchy{0, 1, 2}[b[0]-'0']
	return nil
}

// A body over which the codec panics is dead like any that does not decode, and takes none of its
// batch along.
func TestCodecThatPanics(t *testing.T) {
	bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) {
		for _, body := range []string{"1", `"x"`, "2"} {
			_, err := client.Enqueue(t.Context(), "events", bide.Message{ID: body, Body: []byte(body)})
			assert.NoError(t, err)
		}
		touchies := bide.NewQueue[touchy]("events")
		_, err := touchies.Get(t.Context(), client, `"x"`)
		assert.ErrorIs(t, err, bide.ErrDecode)

		var got []touchy
		consumer := bide.NewConsumer(client, bide.ConsumerConfig{Logger: quiet()})
		touchies.HandleBatch(consumer, func(_ context.Context, _ string, ds []*bide.Delivery[touchy]) error {
			for _, d := range ds {
				got = append(got, d.Body)
			}
			return nil
		}, bide.BatchConfig{})
		stop := start(t, consumer)
		pass(time.Hour)
		assert.NoError(t, stop())
		assert.Equal(t, got, []touchy{1, 2})
		assert.Equal(t, eventsTotal(t, client), storage.Counters{Enqueued: 3, Claimed: 3, Acked: 2, Died: 1})
		r, err := client.Get(t.Context(), "events", `"x"`)
		assert.NoError(t, err)
		assert.True(t, strings.Contains(r.Reason, "index out of range"), r.Reason)
	})
}
