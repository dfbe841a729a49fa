// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/bidemq/bide/storage"
)

// Recorder writes down the calls of one process. It may be used from many goroutines.
type Recorder struct {
	process string

	mu   sync.Mutex
	to   io.Writer
	last int64
	err  error
}

// NewRecorder returns a recorder that writes to a file, say. Names of processes must differ.
func NewRecorder(process string, to io.Writer) *Recorder { return &Recorder{process: process, to: to} }

// Err returns the first error of writing. Without it the history is whole.
func (r *Recorder) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// Engine returns an engine that does what e does, and whose calls are recorded: those that store,
// hand out, change and remove messages. Several engines may be recorded by one Recorder.
func (r *Recorder) Engine(e storage.Engine) storage.Engine { return &recorded{Engine: e, to: r} }

func (r *Recorder) write(c *Call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	line, err := json.Marshal(c)
	if err == nil {
		_, err = r.to.Write(append(line, '\n'))
	}
	if r.err == nil {
		r.err = err
	}
}

func (r *Recorder) begin(op, queue string, items []Item) *Call {
	r.mu.Lock()
	r.last++
	c := &Call{Process: r.process, Number: r.last, Op: op, Queue: queue, Began: time.Now().UTC(), Items: items}
	r.mu.Unlock()
	r.write(c)
	return c
}

func (r *Recorder) end(c *Call, err error) {
	c.Ended = time.Now().UTC()
	switch {
	case err == nil:
		c.Fate = OK
	case nothingDone(err):
		c.Fate = Fail
	default:
		c.Fate = Unknown
	}
	if err != nil {
		c.Error = err.Error()
	}
	r.write(c)
}

// nothingDone says whether an error promises that the call changed nothing.
func nothingDone(err error) bool {
	for _, e := range []error{
		storage.ErrInvalid, storage.ErrTooLarge, storage.ErrExpired, storage.ErrNotFound, storage.ErrConflict, storage.ErrFull,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

type recorded struct {
	storage.Engine
	to *Recorder
}

// content is a hash of what a message says.
func content(body []byte, headers map[string]string) string {
	h := sha256.New()
	h.Write(body)
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		fmt.Fprintf(h, "\x00%q%q", name, headers[name])
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// Enqueue implements [storage.Engine].
func (e *recorded) Enqueue(ctx context.Context, now time.Time, queue string, recs []storage.Record) ([]storage.EnqueueResult, error) {
	items := make([]Item, len(recs))
	for i := range recs {
		in := &recs[i]
		items[i] = Item{
			ID: in.ID, Key: in.Key, Body: content(in.Body, in.Headers), OnLive: in.OnLive, Max: in.MaxAttempts, ExpireIn: in.ExpireIn,
		}
	}
	c := e.to.begin("enqueue", queue, items)
	results, err := e.Engine.Enqueue(ctx, now, queue, recs)
	for i := range results {
		c.Now = results[i].Now
		items[i].Outcome, items[i].Seq, items[i].Due = results[i].Outcome, results[i].Seq, results[i].Due
		items[i].Dropped = results[i].Dropped
	}
	e.to.end(c, err)
	return results, err
}

// Claim implements [storage.Engine].
func (e *recorded) Claim(ctx context.Context, now time.Time, ask storage.Claim) (storage.Claimed, error) {
	c := e.to.begin("claim", ask.Queue, nil)
	c.Lease = ask.Lease.Milliseconds()
	got, err := e.Engine.Claim(ctx, now, ask)
	c.Now = got.Now
	for i := range got.Records {
		r := &got.Records[i]
		c.Items = append(c.Items, Item{
			ID: r.ID, Seq: r.Seq, Token: r.Lease.Token, Body: content(r.Body, r.Headers), Key: r.Key, Due: r.Due, FirstDue: r.FirstDue,
			Until: r.Lease.Until, Max: r.MaxAttempts, Attempts: r.Attempts, Deliveries: r.Deliveries,
		})
	}
	e.to.end(c, err)
	return got, err
}

// perQueue splits receipts by their queues, whose calls are recorded apart.
func perQueue[T any](all []T, receipt func(T) storage.Receipt) map[string][]T {
	queues := map[string][]T{}
	for _, one := range all {
		q := receipt(one).Queue
		queues[q] = append(queues[q], one)
	}
	return queues
}

// Extend implements [storage.Engine].
func (e *recorded) Extend(ctx context.Context, now time.Time, lease time.Duration, rs []storage.Receipt) ([]storage.Receipt, error) {
	var calls []*Call
	for queue, some := range perQueue(rs, func(r storage.Receipt) storage.Receipt { return r }) {
		items := make([]Item, len(some))
		for i, r := range some {
			items[i] = Item{ID: r.ID, Token: r.Token}
		}
		c := e.to.begin("extend", queue, items)
		c.Lease = lease.Milliseconds()
		calls = append(calls, c)
	}
	lost, err := e.Engine.Extend(ctx, now, lease, rs)
	e.returned(calls, lost, err)
	return lost, err
}

// Settle implements [storage.Engine].
func (e *recorded) Settle(ctx context.Context, now time.Time, ss []storage.Settlement) ([]storage.Receipt, error) {
	var calls []*Call
	for queue, some := range perQueue(ss, func(s storage.Settlement) storage.Receipt { return s.Receipt }) {
		items := make([]Item, len(some))
		for i, s := range some {
			items[i] = Item{ID: s.Receipt.ID, Token: s.Receipt.Token, Verdict: s.Verdict}
		}
		calls = append(calls, e.to.begin("settle", queue, items))
	}
	lost, err := e.Engine.Settle(ctx, now, ss)
	e.returned(calls, lost, err)
	return lost, err
}

func (e *recorded) returned(calls []*Call, lost []storage.Receipt, err error) {
	for _, c := range calls {
		for i := range c.Items {
			it := &c.Items[i]
			it.Lost = slices.Contains(lost, storage.Receipt{Queue: c.Queue, ID: it.ID, Token: it.Token})
		}
		e.to.end(c, err)
	}
}

// Cancel implements [storage.Admin].
func (e *recorded) Cancel(ctx context.Context, now time.Time, queue, id string, running bool) error {
	c := e.to.begin("cancel", queue, []Item{{ID: id}})
	err := e.Engine.Cancel(ctx, now, queue, id, running)
	e.to.end(c, err)
	return err
}

// Edit implements [storage.Admin].
func (e *recorded) Edit(ctx context.Context, now time.Time, queue, id string, change storage.Edit) (storage.Record, error) {
	c := e.to.begin("edit", queue, []Item{{ID: id}})
	r, err := e.Engine.Edit(ctx, now, queue, id, change)
	if err == nil {
		c.Items[0] = Item{ID: id, Seq: r.Seq, Due: r.Due, Body: content(r.Body, r.Headers)}
	}
	e.to.end(c, err)
	return r, err
}

// Redrive implements [storage.Admin]. It does not say which messages it has redriven.
func (e *recorded) Redrive(ctx context.Context, now time.Time, queue string, f storage.Filter) (storage.Batch, error) {
	c := e.to.begin("redrive", queue, nil)
	b, err := e.Engine.Redrive(ctx, now, queue, f)
	e.to.end(c, err)
	return b, err
}

// Purge implements [storage.Admin]. It does not say which messages it has removed.
func (e *recorded) Purge(ctx context.Context, now time.Time, queue string, f storage.Filter) (storage.Batch, error) {
	c := e.to.begin("purge", queue, nil)
	b, err := e.Engine.Purge(ctx, now, queue, f)
	e.to.end(c, err)
	return b, err
}
