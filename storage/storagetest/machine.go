// SPDX-License-Identifier: Apache-2.0

package storagetest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/bidemq/bide/storage"
)

// Machine runs programs on an engine, in one queue, at explicit instants. Two machines that ran the
// same steps have given the same answers, whatever their engines.
type Machine struct {
	Engine storage.Engine // may be exchanged between steps, for one that was opened again
	Queue  string
	Now    time.Time

	receipts []storage.Receipt      // every one it got, oldest first
	keyOf    func(id string) string // nil if the step says the key
}

// NewMachine returns a machine at the first instant, in a queue that nobody else uses.
func NewMachine(engine storage.Engine, queue string) *Machine {
	return &Machine{Engine: engine, Queue: queue, Now: epoch}
}

// Answer is what a step gave: a value of the engine's, with errors reduced to their category.
type Answer struct {
	Value any
	Err   error
}

// Do runs one step.
func (m *Machine) Do(ctx context.Context, op Op) Answer {
	m.Now = m.Now.Add(op.After)
	value, err := m.do(ctx, op)
	return Answer{Value: value, Err: category(err)}
}

func (m *Machine) do(ctx context.Context, op Op) (any, error) {
	e := m.Engine
	verdicts := map[string]storage.Verdict{
		"ack": storage.Ack, "retry": storage.Retry, "release": storage.Release, "bury": storage.Bury, "expire": storage.Expire,
		"return": storage.Return,
	}
	if v, ok := verdicts[op.Do]; ok {
		var ss []storage.Settlement
		for _, r := range m.back(op.Back) {
			ss = append(ss, storage.Settlement{Receipt: r, Verdict: v, Delay: op.Delay, Reason: op.Do})
		}
		return e.Settle(ctx, m.Now, ss)
	}
	id := ""
	if len(op.IDs) > 0 {
		id = op.IDs[0]
	}
	switch op.Do {
	case "enqueue":
		return m.enqueue(ctx, op)
	case "claim":
		c, err := e.Claim(ctx, m.Now, storage.Claim{
			Queue: m.Queue, Keys: op.Keys, Except: op.Except, Group: op.Group,
			Limit: op.N, MaxBytes: op.Bytes, Lease: op.Lease, By: "program",
		})
		for _, r := range c.Records {
			m.receipts = append(m.receipts, r.Receipt(m.Queue))
		}
		return c, err
	case "extend":
		return e.Extend(ctx, m.Now, op.Lease, m.back(op.Back))
	case "cancel", "cancelRunning":
		return nil, e.Cancel(ctx, m.Now, m.Queue, id, op.Do == "cancelRunning")
	case "reschedule":
		edit := storage.Edit{Delay: &op.Delay}
		if op.Delay < 0 {
			edit = storage.Edit{Due: new(m.Now.Add(op.Delay))}
		}
		return e.Edit(ctx, m.Now, m.Queue, id, edit)
	case "edit":
		return e.Edit(ctx, m.Now, m.Queue, id, storage.Edit{
			Priority: &op.Prio, Body: new([]byte("edited")), Headers: &map[string]string{"edited": "yes"},
		})
	case "pause", "resume":
		return e.Configure(ctx, m.Queue, storage.ConfigEdit{Paused: new(op.Do == "pause")})
	case "deliveries":
		return e.Configure(ctx, m.Queue, storage.ConfigEdit{MaxDeliveries: &op.N})
	case "queueExpiry":
		return e.Configure(ctx, m.Queue, storage.ConfigEdit{ExpireIn: &op.ExpireIn})
	case "configure":
		return e.Configure(ctx, m.Queue, op.config())
	case "keys":
		return m.keys(ctx, op.Key, op.N)
	case "told":
		return nil, m.told(ctx)
	case "purge":
		return e.Purge(ctx, m.Now, m.Queue, m.filter(op, op.State))
	case "redrive":
		f := m.filter(op, storage.Dead)
		f.ID = id
		return e.Redrive(ctx, m.Now, m.Queue, f)
	case "get":
		return e.Get(ctx, m.Now, m.Queue, id)
	case "list":
		return m.list(ctx, m.filter(op, op.State))
	}
	return nil, fmt.Errorf("unknown step %q", op.Do)
}

func (m *Machine) enqueue(ctx context.Context, op Op) (any, error) {
	recs := make([]storage.Record, len(op.IDs))
	for i, id := range op.IDs {
		recs[i] = storage.Record{
			ID: id, Key: op.Key, Priority: op.Prio, Body: fmt.Appendf(nil, "%s at %d", id, m.Now.UnixMilli()),
			Delay: op.Delay, OnLive: op.OnLive, MaxAttempts: op.MaxAttempts, ExpireIn: op.ExpireIn, DedupFor: op.DedupFor,
		}
		if op.Delay < 0 {
			recs[i].Delay, recs[i].Due = 0, m.Now.Add(op.Delay)
		}
		if m.keyOf != nil {
			recs[i].Key = m.keyOf(id)
		}
	}
	results, err := m.Engine.Enqueue(ctx, m.Now, m.Queue, recs)
	for i := range results {
		results[i].Err = category(results[i].Err)
	}
	return results, err
}

func (m *Machine) filter(op Op, state storage.State) storage.Filter {
	f := storage.Filter{State: state, Key: op.Key, Desc: op.Desc, Limit: op.N}
	if op.From != 0 {
		f.From = m.Now.Add(op.From)
	}
	if op.To != 0 {
		f.To = m.Now.Add(op.To)
	}
	return f
}

// config is what a step configures.
func (o Op) config() storage.ConfigEdit {
	switch o.Set {
	case "Ordered":
		return storage.ConfigEdit{Ordered: new(o.N > 0)}
	case "KeyLimit":
		return storage.ConfigEdit{KeyLimit: &o.N}
	case "MinBatch":
		return storage.ConfigEdit{MinBatch: &o.N, Linger: &o.Delay}
	case "KeyIdle":
		return storage.ConfigEdit{KeyIdle: &o.Delay}
	case "MaxLen":
		return storage.ConfigEdit{MaxLen: &o.N}
	case "MaxPerKey":
		return storage.ConfigEdit{MaxPerKey: &o.N}
	case "Overflow":
		return storage.ConfigEdit{Overflow: new(storage.Overflow(o.N))}
	case "RetainFor":
		return storage.ConfigEdit{RetainFor: &o.Delay}
	case "RetainCount":
		return storage.ConfigEdit{RetainCount: &o.N}
	case "RetainBytes":
		return storage.ConfigEdit{RetainBytes: new(int64(o.N))}
	case "DeadFor":
		return storage.ConfigEdit{DeadFor: &o.Delay}
	case "DeadCount":
		return storage.ConfigEdit{DeadCount: &o.N}
	case "TellDead":
		return storage.ConfigEdit{TellDead: new(o.N > 0)}
	default:
		return storage.ConfigEdit{}
	}
}

// keys lists the keys of the queue in every order.
func (m *Machine) keys(ctx context.Context, key string, limit int) (any, error) {
	var all [][]storage.KeyStats
	for _, by := range []storage.KeyOrder{storage.ByName, storage.Largest, storage.Oldest} {
		keys, err := m.Engine.Keys(ctx, m.Now, m.Queue, storage.KeyFilter{Key: key, By: by, Limit: limit})
		if err != nil {
			return nil, err
		}
		all = append(all, keys)
	}
	return all, nil
}

// told tells of the first two untold dead.
func (m *Machine) told(ctx context.Context) error {
	limit := 2
	if m.keyOf != nil {
		limit = storage.MaxBatch // which two are the first depends on the shards
	}
	page, err := m.Engine.List(ctx, m.Now, m.Queue, storage.Filter{State: storage.Dead, Untold: true, Limit: limit})
	if err != nil {
		return err
	}
	var dead []storage.DeadID
	for _, r := range page.Records {
		dead = append(dead, storage.DeadID{ID: r.ID, Seq: r.Seq})
	}
	return m.Engine.Told(ctx, m.Queue, dead)
}

// list reads page after page: engines agree on what they list, not on where pages end.
func (m *Machine) list(ctx context.Context, f storage.Filter) (any, error) {
	var all []storage.Record
	for {
		page, err := m.Engine.List(ctx, m.Now, m.Queue, f)
		if err != nil {
			return nil, err
		}
		all = append(all, page.Records...)
		if !page.More {
			return all, nil
		}
		f.After = page.Last
	}
}

// back returns the receipts that a step means; none where it has got none so far.
func (m *Machine) back(which []int) []storage.Receipt {
	var rs []storage.Receipt
	for _, back := range which {
		if i := len(m.receipts) - 1 - back; i >= 0 {
			rs = append(rs, m.receipts[i])
		}
	}
	return rs
}

// View is everything that can be seen of a queue.
type View struct {
	Stats   storage.Stats
	Records map[string][]storage.Record // by state
	Keys    []storage.KeyStats
}

// View looks at the machine's queue.
func (m *Machine) View(ctx context.Context) (View, error) {
	st, err := m.Engine.Stats(ctx, m.Now, m.Queue)
	if err != nil {
		return View{}, err
	}
	v := View{Stats: Comparable(st), Records: map[string][]storage.Record{}}
	if v.Keys, err = m.Engine.Keys(ctx, m.Now, m.Queue, storage.KeyFilter{Limit: storage.MaxBatch}); err != nil {
		return View{}, err
	}
	for _, state := range []storage.State{storage.Delayed, storage.Ready, storage.Leased, storage.Dead, storage.Done} {
		page, err := m.Engine.List(ctx, m.Now, m.Queue, storage.Filter{State: state, Limit: storage.MaxBatch})
		if err != nil {
			return View{}, err
		}
		v.Records[state.String()] = page.Records
	}
	return v, nil
}

// category reduces an error to what callers may decide by.
func category(err error) error {
	if err == nil {
		return nil
	}
	for _, c := range []error{
		storage.ErrInvalid, storage.ErrTooLarge, storage.ErrExpired, storage.ErrNotFound, storage.ErrConflict,
		storage.ErrLeaseLost, storage.ErrFull, storage.ErrUnavailable, storage.ErrFormat, storage.ErrClosed,
	} {
		if errors.Is(err, c) {
			return c
		}
	}
	return err
}
