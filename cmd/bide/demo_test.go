// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/memstore"
	"github.com/bidemq/bide/storage"
)

// broken is an engine that breaks one promise.
type broken struct {
	storage.Engine
	promise string

	mu   sync.Mutex
	once map[string]bool // ids that were acknowledged before
}

func (b *broken) Enqueue(ctx context.Context, now time.Time, queue string, recs []storage.Record) ([]storage.EnqueueResult, error) {
	if b.promise == "never early" {
		recs = slices.Clone(recs)
		for i := range recs {
			recs[i].Delay -= 100 * time.Millisecond
		}
	}
	results, err := b.Engine.Enqueue(ctx, now, queue, recs)
	if b.promise == "never early" {
		for i := range results {
			results[i].Due = results[i].Due.Add(100 * time.Millisecond)
		}
	}
	return results, err
}

func (b *broken) Settle(ctx context.Context, now time.Time, ss []storage.Settlement) ([]storage.Receipt, error) {
	ss = slices.Clone(ss)
	b.mu.Lock()
	for i, s := range ss {
		switch {
		case b.promise == "nothing lost" && s.Verdict == storage.Retry:
			ss[i].Verdict, ss[i].Delay = storage.Ack, 0
		case b.promise == "acknowledged once" && s.Verdict == storage.Ack && !b.once[s.Receipt.ID]:
			b.once[s.Receipt.ID] = true
			ss[i].Verdict = storage.Release
		}
	}
	b.mu.Unlock()
	return b.Engine.Settle(ctx, now, ss)
}

// The demo is worth something only if it notices.
func TestDemoNotices(t *testing.T) {
	orders, err := loadOrders("", 120)
	assert.NoError(t, err)
	for promise, noticed := range map[string]func(r demoReport) bool{
		"":                  func(r demoReport) bool { return r.verdict() == nil },
		"never early":       func(r demoReport) bool { return r.Early > 0 },
		"nothing lost":      func(r demoReport) bool { return r.Lost > 0 },
		"acknowledged once": func(r demoReport) bool { return r.AckedTwice > 0 && r.HandledTwice > 0 },
	} {
		t.Run(promise, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			a := &app{in: &bytes.Buffer{}, out: &out, err: &out}
			engine := &broken{Engine: memstore.New(memstore.Options{}), promise: promise, once: map[string]bool{}}
			r, err := newDemo(a, engine, orders, time.Second).run(t.Context())
			assert.NoError(t, err)
			assert.True(t, noticed(r), "the report is", r)
			assert.Equal(t, r.verdict() != nil, promise != "")
		})
	}
}
