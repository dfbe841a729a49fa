// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/storage"
)

const (
	demoLease    = 2 * time.Second // how soon the messages of the vanished consumer come back
	demoHeld     = 5               // messages that the vanished consumer has in its hands
	demoAttempts = 3
	demoLead     = time.Second // before the first timeout is due
)

// demo is one run: its queue, and a ledger outside of the engine.
type demo struct {
	app    *app
	engine storage.Engine
	client *bide.Client
	queue  *bide.Queue[order]
	orders []order
	over   time.Duration
	random *rand.Rand
	vanish func(ctx context.Context) (string, error) // lets a consumer vanish with messages in its hands, and tells how

	mu      sync.Mutex
	due     map[string]time.Time // by order number, as the engine answered
	paid    map[string]bool      // canceled in time
	handled map[string]int       // handlers that came to their end
	acked   map[string]int       // acknowledgements that the engine confirmed
	early   int
	lags    []time.Duration
}

func newDemo(a *app, engine storage.Engine, orders []order, over time.Duration) *demo {
	d := &demo{
		app: a, engine: engine, orders: orders, over: over,
		queue:  bide.NewQueue[order](fmt.Sprintf("demo.order-timeout.%d", time.Now().UnixMilli())),
		client: bide.NewClient(engine, bide.ClientConfig{Logger: a.logger()}),
		random: rand.New(rand.NewPCG(1, 2)),
		due:    map[string]time.Time{}, paid: map[string]bool{}, handled: map[string]int{}, acked: map[string]int{},
	}
	d.vanish = d.abandonLeases
	return d
}

// run enqueues, pays, handles and waits until every order is accounted for.
func (d *demo) run(ctx context.Context) (demoReport, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	consumer := bide.NewConsumer(d.client, bide.ConsumerConfig{
		Concurrency: 64, Lease: demoLease, Backoff: bide.Exponential(200*time.Millisecond, time.Second), Name: "demo",
		Logger: slog.New(slog.DiscardHandler), // its handlers fail on purpose
		Hooks:  bide.Hooks{OnDone: d.done},
	})
	d.queue.Handle(consumer, d.handle)

	dues := d.plan()
	if err := d.enqueue(ctx, dues); err != nil {
		return demoReport{}, err
	}
	consuming, endConsuming := context.WithCancel(ctx)
	var parts sync.WaitGroup
	var consumed, paidErr, vanished error
	var how string
	parts.Go(func() { consumed = consumer.Run(consuming) })
	parts.Go(func() { paidErr = d.pay(ctx, dues) })
	parts.Go(func() {
		if pause(ctx, demoLead+d.over/2) {
			how, vanished = d.vanish(ctx)
		}
	})
	ended := d.settled(ctx)
	endConsuming()
	parts.Wait()
	if err := errors.Join(ended, consumed, paidErr, vanished); err != nil {
		return demoReport{}, err
	}
	return d.report(ctx, how)
}

// plan says when the timeout of each order is due, from its enqueue on.
func (d *demo) plan() []time.Duration {
	dues := make([]time.Duration, len(d.orders))
	for i := range dues {
		dues[i] = demoLead + time.Duration(d.random.Int64N(int64(d.over)))
	}
	return dues
}

func (d *demo) enqueue(ctx context.Context, dues []time.Duration) error {
	const atOnce = 500
	for from := 0; from < len(d.orders); from += atOnce {
		batch := d.orders[from:min(from+atOnce, len(d.orders))]
		next := from
		results, err := d.queue.EnqueueMany(ctx, d.client, batch, func(o order, m *bide.Message) {
			m.ID, m.Delay, m.MaxAttempts = o.Number, dues[next], demoAttempts
			next++
		})
		if err != nil {
			return err
		}
		d.mu.Lock()
		for _, r := range results {
			d.due[r.ID] = r.Due
		}
		d.mu.Unlock()
	}
	return nil
}

// pay cancels the timeout of a third of the orders shortly before it is due.
func (d *demo) pay(ctx context.Context, dues []time.Duration) error {
	type payment struct {
		number string
		after  time.Duration
	}
	var payments []payment
	for i, o := range d.orders {
		if i%3 == 1 {
			payments = append(payments, payment{o.Number, dues[i] - 200*time.Millisecond - time.Duration(d.random.IntN(600))*time.Millisecond})
		}
	}
	slices.SortFunc(payments, func(a, b payment) int { return int(a.after - b.after) })
	began := time.Now()
	next := make(chan payment)
	errs := make([]error, 16)
	var payers sync.WaitGroup
	for i := range errs {
		payers.Go(func() {
			for p := range next {
				errs[i] = errors.Join(errs[i], d.payOne(ctx, p.number))
			}
		})
	}
	for _, p := range payments {
		if !pause(ctx, p.after-time.Since(began)) {
			break
		}
		next <- p
	}
	close(next)
	payers.Wait()
	return errors.Join(errs...)
}

func (d *demo) payOne(ctx context.Context, number string) error {
	err := d.queue.Cancel(ctx, d.client, number)
	switch {
	case err == nil:
		d.mu.Lock()
		defer d.mu.Unlock()
		d.paid[number] = true
		return nil
	case errors.Is(err, bide.ErrNotFound), errors.Is(err, bide.ErrConflict): // too late, its timeout is handled
		return nil
	case ctx.Err() != nil:
		return nil
	}
	return fmt.Errorf("pay %s: %w", number, err)
}

// handle cancels an unpaid order. Now and then what it needs does not answer, and for some orders it
// never does.
func (d *demo) handle(_ context.Context, m *bide.Delivery[order]) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if m.Claimed.Before(m.Due) || m.Claimed.Before(d.due[m.ID]) {
		d.early++
	}
	d.lags = append(d.lags, m.Lag)
	switch {
	case m.Body.Card == "amex" && m.Body.Total > 15_000:
		return errors.New("the card company does not release the amount")
	case d.random.IntN(10) == 0:
		return errors.New("the warehouse did not answer")
	}
	d.handled[m.ID]++
	return nil
}

func (d *demo) done(m *bide.Delivery[[]byte], done bide.Done) {
	if done.Verdict == storage.Ack && done.Settle == nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.acked[m.ID]++
	}
}

// settled waits until nothing is left in the queue, and shows how far it is.
func (d *demo) settled(ctx context.Context) error {
	p := d.app.newProgress("orders settled", len(d.orders))
	defer p.end()
	patience := time.NewTimer(demoLead + d.over + time.Minute)
	defer patience.Stop()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		st, err := d.client.Stats(ctx, d.queue.Name())
		if err != nil {
			return err
		}
		left := st.Delayed + st.Ready + st.Leased
		p.set(len(d.orders) - int(left))
		if left == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-patience.C:
			return fmt.Errorf("%d orders are not settled a minute after the last was due", left)
		case <-tick.C:
		}
	}
}

// pause waits for d and says whether ctx still runs.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
