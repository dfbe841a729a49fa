// SPDX-License-Identifier: Apache-2.0

package storagetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/memstore"
	"github.com/bidemq/bide/storage"
)

// spreadMachine runs programs on a spread queue and on its model.
type spreadMachine struct {
	engines []storage.Engine
	got     *Machine // one of the engines
	want    *Machine // the model, in one of its queues
	names   []string // of those: one for each key, and one for each id without a key
	moves   bool     // the number of shards has changed
	tokens  map[string]int64
}

func newSpreadMachine(engines []storage.Engine) *spreadMachine {
	m := &spreadMachine{
		engines: engines, got: NewMachine(engines[0], NewQueueName()), want: NewMachine(memstore.New(memstore.Options{}), ""),
		tokens: map[string]int64{},
	}
	for n := range 10 {
		m.names = append(m.names, m.queueOf(fmt.Sprint(n)))
	}
	for _, id := range []string{"a", "b", "c", "d", "ka", "la", "ma"} {
		m.names = append(m.names, m.queueOf(id))
	}
	m.got.keyOf, m.want.keyOf = keyIn, keyIn
	return m
}

// keyIn is the key of an id.
func keyIn(id string) string { return id[:len(id)-1] }

// queueOf is the queue of the model that a record is in.
func (m *spreadMachine) queueOf(id string) string {
	if key := keyIn(id); key != "" {
		return "key-" + key
	}
	return "id-" + id
}

// step makes one step and says how the answers differ.
func (m *spreadMachine) step(ctx context.Context, op Op) string {
	m.got.Engine = m.engines[op.Via%len(m.engines)]
	m.want.Now = m.got.Now.Add(op.After)
	for _, m.want.Queue = range m.names { // a shard works off what time did to all that it has, whatever the call is about
		if _, err := m.want.Engine.Stats(ctx, m.want.Now, m.want.Queue); err != nil {
			return err.Error()
		}
	}
	switch op.Do {
	case "shards":
		_, err := m.got.Engine.Configure(ctx, m.got.Queue, storage.ConfigEdit{Shards: &op.N})
		m.moves = m.moves || op.N > 1
		m.got.Now = m.want.Now
		if errors.Is(err, storage.ErrConflict) { // too many changes
			return ""
		}
		return assert.Diff(err, nil)
	case "repair":
		m.got.Now = m.want.Now
		return m.repair(ctx)
	case "claim":
		return m.claim(ctx, op)
	case "enqueue":
		return m.enqueue(ctx, op)
	case "ack", "retry", "release", "bury", "expire", "return", "extend":
		return assert.Diff(m.lost(m.got, m.got.Do(ctx, op)), m.lost(m.want, m.do(ctx, op)))
	case "cancel", "cancelRunning", "reschedule", "edit", "get":
		m.want.Queue = m.queueOf(op.IDs[0])
		return assert.Diff(plain(m.got.Do(ctx, op)), plain(m.do(ctx, op)))
	case "purge", "redrive", "told":
		return m.some(ctx, op)
	default:
		return m.configure(ctx, op)
	}
}

// do makes a step in the model, at the instant of the step.
func (m *spreadMachine) do(ctx context.Context, op Op) Answer {
	op.After = 0
	return m.want.Do(ctx, op)
}

// enqueue stores the records of a batch in the queues of the model that they belong to.
func (m *spreadMachine) enqueue(ctx context.Context, op Op) string {
	answer := m.got.Do(ctx, op)
	got, ok := answer.Value.([]storage.EnqueueResult)
	if !ok || answer.Err != nil || len(got) != len(op.IDs) {
		return fmt.Sprintf("got %v, want %d results", answer, len(op.IDs))
	}
	want := make([]storage.EnqueueResult, len(op.IDs))
	for _, m.want.Queue = range m.names {
		part, which := op, []int(nil)
		part.IDs = nil
		for i, id := range op.IDs {
			if m.queueOf(id) == m.want.Queue {
				part.IDs, which = append(part.IDs, id), append(which, i)
			}
		}
		if len(which) == 0 {
			continue
		}
		results, ok := m.do(ctx, part).Value.([]storage.EnqueueResult)
		for k, i := range which {
			if ok {
				want[i] = results[k]
			}
		}
	}
	for i := range got {
		got[i].Seq, want[i].Seq = min(got[i].Seq, 1), min(want[i].Seq, 1) // whether there is one
	}
	return assert.Diff(got, want)
}

// claim claims from the engine, and from each queue of the model as many as the engine got of it.
func (m *spreadMachine) claim(ctx context.Context, op Op) string {
	answer := m.got.Do(ctx, op)
	got, ok := answer.Value.(storage.Claimed)
	if !ok || answer.Err != nil {
		return fmt.Sprintf("got %v", answer)
	}
	if diff := m.fits(op, got); diff != "" {
		return diff
	}
	scope := storage.Scope{Keys: op.Keys, Except: op.Except}
	enough := len(got.Records) >= op.N || op.Bytes > 0 && len(got.Records) > 0 || op.Group && len(got.Records) > 0
	next := storage.Forever
	leases := map[string]storage.Receipt{}
	for _, m.want.Queue = range m.names {
		var mine []storage.Record
		for _, r := range got.Records {
			if m.queueOf(r.ID) == m.want.Queue {
				mine = append(mine, r)
			}
		}
		one := storage.Claim{Queue: m.want.Queue, Group: op.Group, Limit: len(mine), Lease: op.Lease, By: "program"}
		if op.Group && len(mine) > 0 && op.Bytes == 0 {
			one.Limit = op.N // a run is as long as it can be
		}
		if len(mine) > 0 {
			c, err := m.want.Engine.Claim(ctx, m.want.Now, one)
			if err != nil {
				return err.Error()
			}
			for _, r := range c.Records {
				leases[r.ID] = r.Receipt(m.want.Queue)
			}
			if diff := assert.Diff(seen(mine), seen(c.Records)); diff != "" {
				return diff
			}
		}
		if enough || !scope.Has(keyOfQueue(m.want.Queue)) {
			continue
		}
		one.Limit = 1
		c, err := m.want.Engine.Claim(ctx, m.want.Now, one)
		if err != nil || len(c.Records) > 0 {
			return fmt.Sprintf("got %v, want %v as well, %v", ids(got.Records), ids(c.Records), err)
		}
		next = min(next, c.Next)
	}
	for _, r := range got.Records {
		m.want.receipts = append(m.want.receipts, leases[r.ID])
	}
	if !enough && (got.Next > next || got.Next < next && scope.All()) { // a part may be told to look too early
		return fmt.Sprintf("next is in %s, want %s", got.Next, next)
	}
	return ""
}

// keyOfQueue is the key of a queue of the model.
func keyOfQueue(queue string) string {
	if key, ok := strings.CutPrefix(queue, "key-"); ok {
		return key
	}
	return ""
}

// fits says what is wrong with a claim whatever the model says.
func (m *spreadMachine) fits(op Op, got storage.Claimed) string {
	bytes := 0
	for _, r := range got.Records {
		bytes += len(r.Body)
		for name, value := range r.Headers {
			bytes += len(name) + len(value)
		}
		if r.Lease.Token <= m.tokens[r.ID] {
			return fmt.Sprintf("token %d of %s is not above %d", r.Lease.Token, r.ID, m.tokens[r.ID]) // R5
		}
		m.tokens[r.ID] = r.Lease.Token
		if op.Group && r.Key != got.Records[0].Key {
			return fmt.Sprintf("the run %v is of two keys", ids(got.Records))
		}
	}
	if op.Bytes > 0 && len(got.Records) > 1 && bytes > op.Bytes {
		return fmt.Sprintf("got %d bytes, want %d", bytes, op.Bytes)
	}
	if len(got.Records) > op.N {
		return fmt.Sprintf("got %d records, want %d", len(got.Records), op.N)
	}
	return ""
}

// some purges, redrives or tells of the dead. Redriving is refused while records may lie elsewhere. R20
func (m *spreadMachine) some(ctx context.Context, op Op) string {
	got := m.got.Do(ctx, op)
	if op.Do == "redrive" && errors.Is(got.Err, storage.ErrConflict) && m.moves {
		return ""
	}
	if op.Do == "redrive" && len(op.IDs) > 0 {
		m.want.Queue = m.queueOf(op.IDs[0])
		want := m.do(ctx, op)
		return assert.Diff(counts(got), counts(want))
	}
	var sum storage.Batch
	for _, m.want.Queue = range m.names {
		want := m.do(ctx, op)
		if want.Err != nil {
			return want.Err.Error()
		}
		if b, ok := want.Value.(storage.Batch); ok {
			sum.Count += b.Count
			sum.Skipped += b.Skipped
		}
	}
	if op.Do == "told" {
		return assert.Diff(got.Err, nil)
	}
	return assert.Diff(counts(got), counts(Answer{Value: sum}))
}

// counts are what a batch did and why it did not.
func counts(a Answer) Answer {
	if b, ok := a.Value.(storage.Batch); ok {
		a.Value = []int{b.Count, b.Skipped}
	}
	return a
}

// configure changes the engine and each queue of the model, when all has been worked off that was to be by the
// configuration of before.
func (m *spreadMachine) configure(ctx context.Context, op Op) string {
	if _, err := m.got.Engine.Stats(ctx, m.want.Now, m.got.Queue); err != nil {
		return err.Error()
	}
	got := m.got.Do(ctx, op)
	for _, m.want.Queue = range m.names {
		if diff := assert.Diff(got.Err, m.do(ctx, op).Err); diff != "" {
			return diff
		}
	}
	return ""
}

// repair looks for damage to the end. There is none. R14
func (m *spreadMachine) repair(ctx context.Context) string {
	for after := ""; ; {
		r, err := m.got.Engine.Repair(ctx, m.got.Now, m.got.Queue, storage.Repair{After: after, Limit: storage.MaxBatch})
		if err != nil || len(r.Fixes) > 0 {
			return fmt.Sprintf("repair says %v, %v", r.Fixes, err)
		}
		if after = r.Next; after == "" {
			return ""
		}
	}
}

// finish works off all that is left. Then nothing lives, and what is dead can be redriven and worked off, too.
func (m *spreadMachine) finish(ctx context.Context) string {
	for _, op := range []Op{
		{Do: "resume"},
		{Do: "deliveries"},
	} {
		if diff := m.step(ctx, op); diff != "" {
			return diff
		}
	}
	if diff := m.drain(ctx); diff != "" {
		return diff
	}
	for _, op := range []Op{{Do: "repair", After: time.Second}, {Do: "repair", After: time.Second}} { // dedup windows end
		if diff := cmp.Or(m.step(ctx, op), m.compare(ctx)); diff != "" {
			return diff
		}
	}
	m.moves = false // nothing does any more: redriving has to work
	return m.redrive(ctx)
}

// redrive works off what is dead, one record of each id after the other.
func (m *spreadMachine) redrive(ctx context.Context) string {
	for range 100 {
		page, err := m.got.Engine.List(ctx, m.got.Now, m.got.Queue, storage.Filter{State: storage.Dead, Limit: storage.MaxBatch})
		if err != nil {
			return err.Error()
		}
		if len(page.Records) == 0 {
			return ""
		}
		done := map[string]bool{}
		for _, id := range ids(page.Records) {
			if done[id] {
				continue
			}
			done[id] = true
			if diff := m.step(ctx, Op{Do: "redrive", IDs: []string{id}, N: 1, After: time.Millisecond}); diff != "" {
				return diff
			}
		}
		if diff := m.drain(ctx); diff != "" {
			return diff
		}
	}
	return "there are dead messages after all were redriven a hundred times"
}

// drain claims and acks until nothing lives.
func (m *spreadMachine) drain(ctx context.Context) string {
	for range 100 {
		st, err := m.got.Engine.Stats(ctx, m.got.Now, m.got.Queue)
		if err != nil {
			return err.Error()
		}
		if st.Delayed+st.Ready+st.Leased == 0 {
			return m.compare(ctx)
		}
		diff := cmp.Or(
			m.step(ctx, Op{Do: "claim", N: 5, Lease: time.Second, After: 500 * time.Millisecond, Via: 1}),
			m.step(ctx, Op{Do: "ack", Back: []int{0, 1, 2, 3, 4}, After: time.Millisecond}),
		)
		if diff != "" {
			return diff
		}
	}
	return "messages are left after a hundred claims"
}

// lost says which receipts were lost: they are not the same, but come in the same order.
func (m *spreadMachine) lost(of *Machine, a Answer) Answer {
	var which []int
	rs, _ := a.Value.([]storage.Receipt)
	for _, r := range rs {
		which = append(which, slices.Index(of.receipts, r))
	}
	slices.Sort(which)
	a.Value = which
	return a
}

// plain is an answer about one record, without what depends on the shard.
func plain(a Answer) Answer {
	if r, ok := a.Value.(storage.Record); ok {
		a.Value = seen([]storage.Record{r})[0]
	}
	return a
}

// seen are records without what depends on the shard.
func seen(recs []storage.Record) []storage.Record {
	recs = slices.Clone(recs)
	for i := range recs {
		recs[i].Seq, recs[i].Lease.Token = 0, 0
	}
	return recs
}
