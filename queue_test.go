// SPDX-License-Identifier: Apache-2.0

package bide_test

import (
	"bytes"
	"encoding/gob"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/storage"
)

func TestOptionsEditTheMessage(t *testing.T) {
	at := time.Now()
	got, err := orders.Message(order{"A", 1},
		bide.In(time.Hour), bide.At(at), bide.ID("id"), bide.Key("key"), bide.Priority(9), bide.MaxAttempts(3),
		bide.ExpireIn(time.Minute), bide.DedupFor(time.Second), bide.Replace(), bide.Rerun(),
		bide.Header("a", "1"), bide.Header("b", "2"))
	assert.NoError(t, err)
	assert.Equal(t, got, bide.Message{
		ID: "id", Key: "key", Priority: 9, Body: []byte(`{"Number":"A","Cents":1}`),
		Headers: map[string]string{"a": "1", "b": "2"}, Due: at,
		ExpireIn: time.Minute, MaxAttempts: 3, DedupFor: time.Second, OnLive: storage.Rerun,
	})
	got, err = orders.Message(order{}, bide.At(at), bide.In(time.Hour), bide.Replace())
	assert.NoError(t, err)
	assert.Equal(t, []any{got.Due, got.Delay, got.OnLive}, []any{time.Time{}, time.Hour, storage.Replace})
}

func TestHeadersOfOneMessageAreNotAnothers(t *testing.T) {
	headers := map[string]string{"a": "1"}
	m := bide.Message{Headers: headers}
	bide.Header("b", "2")(&m)
	assert.Equal(t, headers, map[string]string{"a": "1"})
}

func TestMaxAttemptsDefaults(t *testing.T) {
	bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) {
		for n, want := range map[int]int{0: bide.DefaultMaxAttempts, 7: 7, bide.Unlimited: 0} {
			id := fmt.Sprint(n)
			put(t, client, id, bide.MaxAttempts(n))
			r, err := client.Get(t.Context(), "orders", id)
			assert.NoError(t, err)
			assert.Equal(t, r.MaxAttempts, want)
		}
	})
}

func TestBadMessagesAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		opt  bide.Option
		want error
	}{
		"negative delay":        {bide.In(-1), bide.ErrInvalid},
		"overflowing delay":     {bide.In(math.MaxInt64), bide.ErrInvalid},
		"due in another age":    {bide.At(time.Date(3000, 1, 1, 0, 0, 0, 0, time.UTC)), bide.ErrInvalid},
		"due and delayed":       {func(m *bide.Message) { m.Due, m.Delay = time.Now(), 1 }, bide.ErrInvalid},
		"priority too high":     {bide.Priority(10), bide.ErrInvalid},
		"negative attempts":     {bide.MaxAttempts(-2), bide.ErrInvalid},
		"id too long":           {bide.ID(strings.Repeat("x", 257)), bide.ErrInvalid},
		"id with a newline":     {bide.ID("a\nb"), bide.ErrInvalid},
		"body too large":        {bide.Header("x", strings.Repeat("x", 1<<20)), bide.ErrTooLarge},
		"expired already":       {func(m *bide.Message) { m.Due, m.ExpireIn = time.Now().Add(-time.Hour), time.Second }, bide.ErrExpired},
		"header without a name": {bide.Header("", "x"), bide.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) {
				res, err := orders.Enqueue(t.Context(), client, order{}, c.opt)
				assert.ErrorIs(t, err, c.want)
				assert.Equal(t, res.Err, err)
				assert.Equal(t, res.Outcome, storage.Refused)
				assert.True(t, !errors.Is(err, bide.ErrUnknown), err)

				m, err := orders.Message(order{}, c.opt)
				assert.NoError(t, err)
				many, err := client.EnqueueMany(t.Context(), "orders", []bide.Message{{}, m, {}})
				assert.ErrorIs(t, err, c.want)
				assert.NoError(t, many[0].Err)
				assert.ErrorIs(t, many[1].Err, c.want)
				assert.NoError(t, many[2].Err)
				assert.Equal(t, total(t, client), storage.Counters{Enqueued: 2})
			})
		})
	}
}

func TestPastMeansNow(t *testing.T) {
	bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) {
		put(t, client, "past", bide.At(time.Now().Add(-time.Hour)))
		held, err := client.Claim(t.Context(), "orders", bide.ClaimOptions{})
		assert.NoError(t, err)
		assert.Equal(t, len(held), 1)
	})
}

func TestIllegalNames(t *testing.T) {
	bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) {
		for _, name := range []string{"", "a b", "-a", strings.Repeat("x", 129), "ä"} {
			func() {
				defer func() { assert.True(t, recover() != nil, name) }()
				bide.NewQueue[order](name)
			}()
			_, err := client.Enqueue(t.Context(), name, bide.Message{})
			assert.ErrorIs(t, err, bide.ErrInvalid)
			_, err = client.EnqueueMany(t.Context(), name, []bide.Message{{}})
			assert.ErrorIs(t, err, bide.ErrInvalid)
			assert.True(t, !errors.Is(err, bide.ErrUnknown), err)
			assert.ErrorIs(t, client.Cancel(t.Context(), name, "a"), bide.ErrInvalid)
		}
	})
}

func TestMadeIDsSort(t *testing.T) {
	bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) {
		var ids []string
		for range 100 {
			res, err := orders.Enqueue(t.Context(), client, order{})
			assert.NoError(t, err)
			ids = append(ids, res.ID)
		}
		assert.True(t, slices.IsSorted(ids))
		assert.Equal(t, len(slices.Compact(ids)), 100)
	})
}

func TestOutcomesOfTakenIDs(t *testing.T) {
	bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) {
		try := func(want storage.Outcome, opts ...bide.Option) {
			t.Helper()
			res, err := orders.Enqueue(t.Context(), client, order{}, append(opts, bide.ID("a"))...)
			assert.NoError(t, err)
			assert.Equal(t, res.Outcome, want)
		}
		try(storage.Stored)
		try(storage.Duplicate)
		try(storage.Replaced, bide.Replace(), bide.DedupFor(time.Minute))
		held, err := client.Claim(t.Context(), "orders", bide.ClaimOptions{})
		assert.NoError(t, err)
		try(storage.Duplicate)
		assert.NoError(t, held[0].Ack(t.Context()))
		try(storage.Duplicate)
		pass(time.Minute)
		try(storage.Stored)
		_, err = client.Claim(t.Context(), "orders", bide.ClaimOptions{})
		assert.NoError(t, err)
		try(storage.Reran, bide.Rerun())
	})
}

func TestEnqueueManyEditsEachMessage(t *testing.T) {
	bubble(t, func(t *testing.T, engine *faulty, client *bide.Client) {
		bodies := make([]order, 600)
		for i := range bodies {
			bodies[i].Number = fmt.Sprintf("%03d", i)
		}
		res, err := orders.EnqueueMany(t.Context(), client, bodies, func(o order, m *bide.Message) {
			m.ID = o.Number
			if o.Number == "300" {
				m.Priority = -1
			}
		})
		assert.ErrorIs(t, err, bide.ErrInvalid)
		assert.Equal(t, res[599].ID, "599")
		assert.ErrorIs(t, res[300].Err, bide.ErrInvalid)
		assert.Equal(t, engine.calls(enqueue), []int{256, 256, 88})
		i := 0
		for m, err := range orders.Messages(t.Context(), client, storage.Ready) { // in order, over pages
			assert.NoError(t, err)
			if i == 300 {
				i++
			}
			assert.Equal(t, m.Body, bodies[i])
			i++
		}
		assert.Equal(t, i, 600)
	})
}

func TestEnqueueManySplitsByBytes(t *testing.T) {
	bubble(t, func(t *testing.T, engine *faulty, client *bide.Client) {
		ms := make([]bide.Message, 10)
		for i := range ms {
			ms[i].Body = make([]byte, 1<<20)
		}
		_, err := client.EnqueueMany(t.Context(), "raw", ms)
		assert.NoError(t, err)
		assert.Equal(t, slices.Max(engine.calls(enqueue)), 3)
	})
}

func TestCallsByID(t *testing.T) {
	bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) {
		ctx := t.Context()
		put(t, client, "a", bide.In(time.Minute))
		assert.NoError(t, orders.Reschedule(ctx, client, "a", bide.In(time.Hour)))
		m, err := orders.Get(ctx, client, "a")
		assert.NoError(t, err)
		assert.Equal(t, m.Due, time.Now().Add(time.Hour))
		at := time.Now().Add(time.Second)
		assert.NoError(t, orders.Reschedule(ctx, client, "a", bide.At(at)))
		assert.NoError(t, orders.Edit(ctx, client, "a", order{"new", 2}))
		m, err = orders.Get(ctx, client, "a")
		assert.NoError(t, err)
		assert.Equal(t, m.Due, at)
		assert.Equal(t, m.Body, order{"new", 2})

		assert.ErrorIs(t, orders.Reschedule(ctx, client, "a", bide.In(-1)), bide.ErrInvalid)
		assert.ErrorIs(t, orders.Reschedule(ctx, client, "a", bide.Priority(1)), bide.ErrInvalid)
		assert.ErrorIs(t, orders.Reschedule(ctx, client, "b", bide.In(1)), bide.ErrNotFound)
		assert.ErrorIs(t, orders.Edit(ctx, client, "b", order{}), bide.ErrNotFound)

		assert.NoError(t, orders.Cancel(ctx, client, "a"))
		assert.ErrorIs(t, orders.Cancel(ctx, client, "a"), bide.ErrNotFound)
		_, err = orders.Get(ctx, client, "a")
		assert.ErrorIs(t, err, bide.ErrNotFound)
		assert.True(t, strings.HasPrefix(err.Error(), `bide: get "orders" "a": message not found`), err)
	})
}

func TestRawQueueStoresBytesAsTheyAre(t *testing.T) {
	raw := bide.NewQueue[[]byte]("raw")
	bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) {
		_, err := raw.Enqueue(t.Context(), client, []byte{0, 255, '{'}, bide.ID("a"))
		assert.NoError(t, err)
		m, err := raw.Get(t.Context(), client, "a")
		assert.NoError(t, err)
		assert.Equal(t, m.Body, []byte{0, 255, '{'})
		assert.Equal(t, m.Record.Body, []byte{0, 255, '{'})
	})
}

// gobCodec stands for any codec, protobuf say.
type gobCodec[T any] struct{}

func (gobCodec[T]) Encode(v T) ([]byte, error) {
	var b bytes.Buffer
	err := gob.NewEncoder(&b).Encode(v)
	return b.Bytes(), err
}

func (gobCodec[T]) Decode(b []byte) (v T, err error) {
	err = gob.NewDecoder(bytes.NewReader(b)).Decode(&v)
	return v, err
}

func TestQueueWithItsOwnCodecAndDefaults(t *testing.T) {
	queue := bide.NewQueueWith("gob", bide.QueueOptions[*order]{
		Codec:    gobCodec[*order]{},
		Defaults: []bide.Option{bide.MaxAttempts(2), bide.Priority(1)},
	})
	bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) {
		_, err := queue.Enqueue(t.Context(), client, &order{"A", 1}, bide.ID("a"), bide.Priority(2))
		assert.NoError(t, err)
		m, err := queue.Get(t.Context(), client, "a")
		assert.NoError(t, err)
		assert.Equal(t, m.Body, &order{"A", 1})
		assert.Equal(t, []int{m.MaxAttempts, m.Priority}, []int{2, 2})
	})
}

func TestPayloadThatDoesNotEncode(t *testing.T) {
	floats := bide.NewQueue[float64]("floats")
	bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) {
		one, err := floats.Enqueue(t.Context(), client, math.NaN())
		assert.ErrorIs(t, err, bide.ErrInvalid)
		assert.True(t, one.ID != "")
		res, err := floats.EnqueueMany(t.Context(), client, []float64{1, math.NaN(), math.Inf(1), 2}, nil)
		assert.ErrorIs(t, err, bide.ErrInvalid)
		assert.ErrorIs(t, res[1].Err, bide.ErrInvalid)
		assert.NoError(t, res[3].Err)
		assert.True(t, strings.Contains(err.Error(), "2 of 4 messages failed"), err)
	})
}
