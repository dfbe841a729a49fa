// SPDX-License-Identifier: Apache-2.0

package bide_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/storage"
)

// told is a call of an engine.
const told = "told"

func (f *faulty) Told(ctx context.Context, queue string, dead []storage.DeadID) error {
	after, err := f.begin(ctx, told, len(dead))
	if err != nil {
		return err
	}
	err = f.Engine.Told(ctx, queue, dead)
	if lost := after(); lost != nil {
		return lost
	}
	return err
}

// obituaries are what OnDead was called with.
type obituaries struct{ notes }

func (o *obituaries) note(_ context.Context, dead bide.Dead) error {
	o.add("%s %s: %s", dead.Queue, dead.ID, dead.Reason)
	return nil
}

// dying is a consumer whose handler does what the ids of its messages say.
func dying(client *bide.Client, config bide.ConsumerConfig) *bide.Consumer {
	config.Logger = quiet()
	consumer := bide.NewConsumer(client, config)
	orders.Handle(consumer, func(_ context.Context, d *bide.Delivery[order]) error {
		switch d.ID {
		case "hopeless":
			return bide.DeadLetter(errors.New("no such account"))
		case "fails":
			return errors.New("boom")
		case "snoozes":
			return bide.Snooze(time.Second)
		}
		return nil
	})
	return consumer
}

// Whatever kills a message, it is told, once, and those that live are not.
func TestOnDeadWhateverKilledIt(t *testing.T) {
	bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) {
		_, err := client.Configure(t.Context(), "orders", storage.ConfigEdit{MaxDeliveries: new(3)})
		assert.NoError(t, err)
		var got obituaries
		stop := start(t, dying(client, bide.ConsumerConfig{OnDead: got.note}))
		put(t, client, "hopeless")
		put(t, client, "lives")
		pass(time.Millisecond)
		assert.Equal(t, got.all(), []string{"orders hopeless: no such account"})
		put(t, client, "fails", bide.MaxAttempts(2))
		pass(time.Hour)
		put(t, client, "snoozes")
		pass(10 * time.Second)
		assert.Equal(t, got.all()[1:], []string{"orders fails: boom", "orders snoozes: " + storage.ReasonMaxDeliveries})

		// The process dies with the message, and none runs when its lease ends.
		assert.NoError(t, stop())
		put(t, client, "lapses", bide.MaxAttempts(1))
		held, err := client.Claim(t.Context(), "orders", bide.ClaimOptions{Lease: time.Minute})
		assert.NoError(t, err)
		assert.Equal(t, len(held), 1)
		pass(time.Hour)
		stop = start(t, dying(client, bide.ConsumerConfig{OnDead: got.note}))
		pass(time.Second)
		assert.Equal(t, got.all()[3:], []string{"orders lapses: " + storage.ReasonLeaseEnded})

		assert.NoError(t, stop())

		// The same while one runs that had nothing to do with it.
		part := bide.NewConsumer(client, bide.ConsumerConfig{OnDead: got.note})
		orders.Only("other").Handle(part, func(context.Context, *bide.Delivery[order]) error { return nil })
		stop = start(t, part)
		put(t, client, "lapses", bide.MaxAttempts(1))
		_, err = client.Claim(t.Context(), "orders", bide.ClaimOptions{Lease: time.Minute})
		assert.NoError(t, err)
		pass(time.Minute + 5*time.Second)
		assert.Equal(t, len(got.all()), 5)
		pass(time.Hour)
		assert.NoError(t, stop())
		assert.Equal(t, len(got.all()), 5)
	})
}

// What is told can be acted upon: the message is there with its body, its key and its history.
func TestOnDeadShowsTheMessage(t *testing.T) {
	bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) {
		dead := make(chan bide.Dead, 1)
		stop := start(t, dying(client, bide.ConsumerConfig{Name: "one", OnDead: func(_ context.Context, d bide.Dead) error {
			dead <- d
			return nil
		}}))
		put(t, client, "fails", bide.MaxAttempts(3), bide.Key("customer-7"))
		d := <-dead
		body, err := orders.Decode(d.Body)
		assert.NoError(t, err)
		assert.Equal(t, []any{d.Queue, d.Key, d.State, d.Attempts, d.Reason, body.Number}, []any{"orders", "customer-7", storage.Dead, 3, "boom", "fails"})
		assert.Equal(t, len(d.History), 3)
		for i, a := range d.History {
			assert.Equal(t, []any{a.Delivery, a.By, a.Reason}, []any{i + 1, "one", "boom"})
		}
		pass(time.Hour)
		assert.NoError(t, stop())
		assert.Equal(t, len(dead), 0)
		r, err := client.Get(t.Context(), "orders", "fails")
		assert.NoError(t, err)
		assert.Equal(t, r.Untold, false)
	})
}

// One that OnDead fails for is told again until that works, and keeps nobody else from being told.
func TestOnDeadThatFails(t *testing.T) {
	bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) {
		var got obituaries
		failures := 0
		stop := start(t, dying(client, bide.ConsumerConfig{OnDead: func(ctx context.Context, dead bide.Dead) error {
			if failures++; dead.ID == "hopeless" && failures < 10 {
				if failures%2 == 0 {
					return []error{}[failures] // panics
				}
				return errors.New("the mail server is down")
			}
			return got.note(ctx, dead)
		}}))
		put(t, client, "hopeless")
		put(t, client, "fails", bide.MaxAttempts(1))
		pass(time.Second)
		assert.Equal(t, got.all(), []string{"orders fails: boom"})
		pass(5 * time.Minute)
		assert.Equal(t, got.all()[1:], []string{"orders hopeless: no such account"})
		assert.NoError(t, stop())
	})
}

// Of several consumers one tells; the others take over when it is gone.
func TestOnDeadOfSeveralConsumers(t *testing.T) {
	bubble(t, func(t *testing.T, engine *faulty, client *bide.Client) {
		engine.takes(told, 10*time.Millisecond)
		var got obituaries
		slow := func(ctx context.Context, dead bide.Dead) error {
			pass(100 * time.Millisecond)
			return got.note(ctx, dead)
		}
		var stops []func() error
		for range 4 {
			stops = append(stops, start(t, dying(client, bide.ConsumerConfig{OnDead: slow})))
		}
		for range 20 {
			put(t, client, "hopeless")
			pass(time.Millisecond)
		}
		pass(time.Minute)
		assert.Equal(t, len(got.all()), 20)
		for _, stop := range stops[1:] {
			assert.NoError(t, stop())
		}
		put(t, client, "hopeless")
		pass(time.Minute)
		assert.NoError(t, stops[0]())
		assert.Equal(t, len(got.all()), 21)
	})
}

// At least once: where nobody knows whether it was noted, it is told again.
func TestOnDeadIsToldAgain(t *testing.T) {
	bubble(t, func(t *testing.T, engine *faulty, client *bide.Client) {
		engine.fails(told, storage.ErrUnavailable)
		var got obituaries
		stop := start(t, dying(client, bide.ConsumerConfig{OnDead: got.note}))
		put(t, client, "hopeless")
		pass(time.Second)
		before := len(got.all())
		assert.True(t, before > 0)
		engine.heals(told)
		pass(time.Hour)
		assert.NoError(t, stop())
		assert.Equal(t, len(got.all()), before+1)
	})
}

// What dies in the drain is told before Run returns, and an OnDead that does not end does not hold
// it for ever.
func TestOnDeadAtShutdown(t *testing.T) {
	bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) {
		var got obituaries
		consumer := bide.NewConsumer(client, bide.ConsumerConfig{Logger: quiet(), OnDead: got.note})
		began := make(chan struct{})
		orders.Handle(consumer, func(context.Context, *bide.Delivery[order]) error {
			close(began)
			pass(time.Second)
			return bide.DeadLetter(errors.New("too late"))
		})
		stop := start(t, consumer)
		put(t, client, "last")
		<-began
		assert.NoError(t, stop())
		assert.Equal(t, got.all(), []string{"orders last: too late"})

		free := make(chan struct{})
		began = make(chan struct{})
		causes := make(chan error, 1)
		stop = start(t, dying(client, bide.ConsumerConfig{Grace: time.Second, OnDead: func(ctx context.Context, _ bide.Dead) error {
			close(began)
			<-ctx.Done()
			causes <- context.Cause(ctx)
			<-free
			return nil
		}}))
		put(t, client, "hopeless")
		<-began
		begun := time.Now()
		err := stop()
		assert.True(t, err != nil && time.Since(begun) == 2*time.Second, err, time.Since(begun))
		assert.ErrorIs(t, <-causes, bide.ErrShutdown)
		close(free)
	})
}

// An engine that cannot be asked for a while keeps what is untold.
func TestOnDeadOutlastsAnOutage(t *testing.T) {
	bubble(t, func(t *testing.T, engine *faulty, client *bide.Client) {
		var got obituaries
		stop := start(t, dying(client, bide.ConsumerConfig{OnDead: got.note}))
		pass(time.Second)
		engine.fails(acquire, storage.ErrUnavailable)
		put(t, client, "hopeless")
		pass(time.Minute)
		assert.Equal(t, got.all(), nil)
		engine.heals(acquire)
		pass(time.Minute)
		assert.NoError(t, stop())
		assert.Equal(t, got.all(), []string{"orders hopeless: no such account"})
	})
}

// OnDead is not begun any more when its time is over: somebody else may tell then.
func TestOnDeadBeginsInTimeOnly(t *testing.T) {
	bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) {
		stop := start(t, dying(client, bide.ConsumerConfig{}))
		_, err := client.Configure(t.Context(), "orders", storage.ConfigEdit{TellDead: new(true)})
		assert.NoError(t, err)
		for range 5 {
			put(t, client, "hopeless")
			pass(time.Second)
		}
		assert.NoError(t, stop())

		calls := 0
		stop = start(t, dying(client, bide.ConsumerConfig{Grace: time.Second, OnDead: func(ctx context.Context, _ bide.Dead) error {
			calls++
			assert.NoError(t, ctx.Err())
			pass(1500 * time.Millisecond)
			return nil
		}}))
		pass(100 * time.Millisecond)
		assert.NoError(t, stop())
		assert.Equal(t, calls, 1)
	})
}
