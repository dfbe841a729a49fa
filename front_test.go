// SPDX-License-Identifier: Apache-2.0

package bide_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/memstore"
	"github.com/bidemq/bide/storage"
)

type order struct {
	Number string
	Cents  int
}

var orders = bide.NewQueue[order]("orders")

// bubble runs a test on fake time with an engine that can be told to fail.
func bubble(t *testing.T, test func(t *testing.T, engine *faulty, client *bide.Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		engine := newFaulty()
		client := bide.NewClient(engine, bide.ClientConfig{Logger: quiet()})
		test(t, engine, client)
		assert.NoError(t, client.Close(t.Context()))
	})
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// pass lets bubble time pass.
func pass(d time.Duration) { <-time.After(d) }

// start runs a consumer and returns a function that stops it and returns what Run said.
func start(t *testing.T, c *bide.Consumer) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	return func() error {
		cancel()
		return <-done
	}
}

// notes are lines that goroutines write down.
type notes struct {
	mu    sync.Mutex
	lines []string
}

func (n *notes) add(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lines = append(n.lines, fmt.Sprintf(format, args...))
}

func (n *notes) all() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.lines)
}

func put(t *testing.T, client *bide.Client, id string, opts ...bide.Option) {
	t.Helper()
	_, err := orders.Enqueue(t.Context(), client, order{Number: id}, append(opts, bide.ID(id))...)
	assert.NoError(t, err)
}

func total(t *testing.T, client *bide.Client) storage.Counters {
	t.Helper()
	s, err := client.Stats(t.Context(), orders.Name())
	assert.NoError(t, err)
	s.Total.Wakeups, s.Total.EmptyClaims = 0, 0
	return s.Total
}

// calls of an engine.
const (
	enqueue = "enqueue"
	claim   = "claim"
	extend  = "extend"
	settle  = "settle"
	wait    = "wait"
)

// faulty is a memstore whose calls can be delayed, refused, and have their answers lost.
type faulty struct {
	storage.Engine

	mu     sync.Mutex
	before map[string]func(context.Context) error // an error is the answer, and nothing happens
	after  map[string]func() error                // an error is the answer, and it has happened
	sizes  map[string][]int                       // items of each call
}

func newFaulty() *faulty {
	return &faulty{
		Engine: memstore.New(memstore.Options{}),
		before: map[string]func(context.Context) error{},
		after:  map[string]func() error{},
		sizes:  map[string][]int{},
	}
}

func (f *faulty) set(call string, before func(context.Context) error, after func() error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before[call], f.after[call] = before, after
}

// takes makes a call take a while.
func (f *faulty) takes(call string, d time.Duration) {
	f.set(call, func(context.Context) error { pass(d); return nil }, nil)
}

// fails makes a call fail without effect.
func (f *faulty) fails(call string, err error) {
	f.set(call, func(context.Context) error { return err }, nil)
}

// loses makes the next n answers of a call get lost.
func (f *faulty) loses(call string, n int) {
	f.set(call, nil, func() error {
		if n--; n >= 0 {
			return storage.ErrUnavailable
		}
		return nil
	})
}

func (f *faulty) heals(call string) { f.set(call, nil, nil) }

func (f *faulty) calls(call string) []int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]int{}, f.sizes[call]...)
}

func (f *faulty) begin(ctx context.Context, call string, size int) (after func() error, err error) {
	f.mu.Lock()
	f.sizes[call] = append(f.sizes[call], size)
	before, after := f.before[call], f.after[call]
	f.mu.Unlock()
	if before != nil {
		err = before(ctx)
	}
	if after == nil {
		after = func() error { return nil }
	}
	return after, err
}

func (f *faulty) Enqueue(ctx context.Context, now time.Time, queue string, recs []storage.Record) ([]storage.EnqueueResult, error) {
	after, err := f.begin(ctx, enqueue, len(recs))
	if err != nil {
		return nil, err
	}
	rs, err := f.Engine.Enqueue(ctx, now, queue, recs)
	if lost := after(); lost != nil {
		return nil, lost
	}
	return rs, err
}

func (f *faulty) Claim(ctx context.Context, now time.Time, c storage.Claim) (storage.Claimed, error) {
	after, err := f.begin(ctx, claim, c.Limit)
	if err != nil {
		return storage.Claimed{}, err
	}
	got, err := f.Engine.Claim(ctx, now, c)
	if lost := after(); lost != nil {
		return storage.Claimed{}, lost
	}
	return got, err
}

func (f *faulty) Extend(ctx context.Context, now time.Time, lease time.Duration, rs []storage.Receipt) ([]storage.Receipt, error) {
	after, err := f.begin(ctx, extend, len(rs))
	if err != nil {
		return nil, err
	}
	gone, err := f.Engine.Extend(ctx, now, lease, rs)
	if lost := after(); lost != nil {
		return nil, lost
	}
	return gone, err
}

func (f *faulty) Settle(ctx context.Context, now time.Time, ss []storage.Settlement) ([]storage.Receipt, error) {
	after, err := f.begin(ctx, settle, len(ss))
	if err != nil {
		return nil, err
	}
	gone, err := f.Engine.Settle(ctx, now, ss)
	if lost := after(); lost != nil {
		return nil, lost
	}
	return gone, err
}

func (f *faulty) Wait(ctx context.Context, scopes []storage.Scope, d time.Duration) ([]int, error) {
	after, err := f.begin(ctx, wait, len(scopes))
	if err != nil {
		return nil, err
	}
	ready, err := f.Engine.Wait(ctx, scopes, d)
	if lost := after(); lost != nil {
		return nil, lost
	}
	return ready, err
}
