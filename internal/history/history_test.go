// SPDX-License-Identifier: Apache-2.0

package history_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/internal/history"
	"github.com/bidemq/bide/memstore"
	"github.com/bidemq/bide/storage"
)

// script runs calls on a recorded engine, whose clock the test turns.
type script struct {
	t      *testing.T
	engine storage.Engine
	store  storage.Engine // the same, not recorded
	log    *bytes.Buffer
	now    time.Time
}

func newScript(t *testing.T) *script {
	s := &script{t: t, log: &bytes.Buffer{}, now: time.UnixMilli(1_700_000_000_000)}
	s.store = memstore.New(memstore.Options{Clock: func() time.Time { return s.now }})
	s.engine = history.NewRecorder("one", s.log).Engine(s.store)
	return s
}

func (s *script) enqueue(recs ...storage.Record) {
	s.t.Helper()
	_, err := s.engine.Enqueue(s.t.Context(), time.Time{}, "q", recs)
	assert.NoError(s.t, err)
}

func (s *script) claim(limit int) []storage.Record {
	s.t.Helper()
	c, err := s.engine.Claim(s.t.Context(), time.Time{}, storage.Claim{Queue: "q", Limit: limit, Lease: time.Minute})
	assert.NoError(s.t, err)
	return c.Records
}

func (s *script) settle(v storage.Verdict, recs ...storage.Record) {
	s.t.Helper()
	for _, r := range recs {
		_, err := s.engine.Settle(s.t.Context(), time.Time{}, []storage.Settlement{{Receipt: r.Receipt("q"), Verdict: v}})
		assert.NoError(s.t, err)
	}
}

func (s *script) end() ([]history.Call, history.Final) {
	s.t.Helper()
	calls, err := history.Read(s.log)
	assert.NoError(s.t, err)
	final, err := history.Look(s.t.Context(), s.store, "q")
	assert.NoError(s.t, err)
	return calls, final
}

// story is a history in which much happens, and all of it is right.
func story(t *testing.T) ([]history.Call, history.Final) {
	t.Helper()
	s := newScript(t)
	_, err := s.engine.Configure(t.Context(), "q", storage.ConfigEdit{Ordered: new(true)})
	assert.NoError(t, err)
	s.enqueue(
		storage.Record{ID: "acked", Body: []byte("1")}, storage.Record{ID: "retried", MaxAttempts: 3}, storage.Record{ID: "lapsed"},
		storage.Record{ID: "first", Key: "k"}, storage.Record{ID: "second", Key: "k"}, storage.Record{ID: "waits", Delay: time.Hour},
	)
	held := s.claim(4)
	assert.Equal(t, len(held), 4)
	_, err = s.engine.Extend(t.Context(), time.Time{}, 2*time.Minute, []storage.Receipt{held[0].Receipt("q")})
	assert.NoError(t, err)
	s.settle(storage.Ack, held[0])
	s.settle(storage.Retry, held[1])
	s.settle(storage.Ack, held[3])
	s.now = s.now.Add(time.Minute)
	s.settle(storage.Ack, s.claim(3)...)
	s.enqueue(storage.Record{ID: "acked", Body: []byte("2")})
	return s.end()
}

func TestTrueHistories(t *testing.T) {
	calls, final := story(t)
	r := history.Check(calls, final, history.Terms{Patience: time.Hour})
	assert.Equal(t, r.Violations, nil)
	assert.Equal(t, []any{r.Messages, r.Deliveries}, []any{6, 7})
	assert.Equal(t, r.Duplicates, map[string]int{"lease ended": 1, "settled, or perhaps": 1})
}

// A checker that cannot fail is worthless: each invariant is broken by a forged history, and named.
func TestForgedHistories(t *testing.T) {
	find := func(calls []history.Call, op, id string) (*history.Call, *history.Item) {
		for i := range calls {
			for k := range calls[i].Items {
				if it := &calls[i].Items[k]; calls[i].Op == op && it.ID == id {
					return &calls[i], it
				}
			}
		}
		t.Fatalf("no %s of %s", op, id)
		return nil, nil
	}
	drop := func(final *history.Final, id string) {
		final.Records = slices.DeleteFunc(final.Records, func(r storage.Record) bool { return r.ID == id })
		final.Stats.Delayed--
		final.Stats.Total.Canceled++
	}
	for _, c := range []struct {
		name      string
		forge     func(calls []history.Call, final *history.Final) []history.Call
		invariant string
		id        string
	}{
		{"a stored message is gone", func(calls []history.Call, f *history.Final) []history.Call {
			drop(f, "waits")
			return calls
		}, history.NoLoss, "waits"},
		{"a stored message is gone while a claim did not return", func(calls []history.Call, f *history.Final) []history.Call {
			drop(f, "waits")
			lost := history.Call{Process: "two", Number: 1, Op: "claim", Queue: "q", Began: calls[len(calls)-1].Began}
			return append(calls, lost)
		}, history.NoLoss, "waits"},
		{"a stored message is gone after its namesake was canceled", func(calls []history.Call, f *history.Final) []history.Call {
			drop(f, "waits")
			early := history.Call{
				Process: "two", Number: 1, Op: "cancel", Queue: "q", Fate: history.OK, Items: []history.Item{{ID: "waits"}},
				Began: calls[0].Began.Add(-2), Ended: calls[0].Began.Add(-1),
			}
			return append(calls, early)
		}, history.NoLoss, "waits"},
		{"an ack that was refused", func(calls []history.Call, _ *history.Final) []history.Call {
			for i := range calls {
				if calls[i].Op == "settle" && calls[i].Items[0].ID == "lapsed" {
					calls[i].Items[0].Lost = true
				}
			}
			return calls
		}, history.NoLoss, "lapsed"},
		{"a body that nobody sent", func(calls []history.Call, _ *history.Final) []history.Call {
			_, it := find(calls, "claim", "acked")
			it.Body = "forged"
			return calls
		}, history.NoInvention, "acked"},
		{"a message that nobody sent", func(calls []history.Call, f *history.Final) []history.Call {
			f.Records = append(f.Records, storage.Record{ID: "foundling", Seq: 99, State: storage.Delayed, Due: f.Stats.Now.Add(time.Hour)})
			f.Stats.Delayed++
			f.Stats.Total.Enqueued++
			return calls
		}, history.NoInvention, "foundling"},
		{"an early delivery", func(calls []history.Call, _ *history.Final) []history.Call {
			c, it := find(calls, "claim", "acked")
			it.Due = c.Now.Add(time.Millisecond)
			return calls
		}, history.NotEarly, "acked"},
		{"a delivery before the time told", func(calls []history.Call, _ *history.Final) []history.Call {
			_, it := find(calls, "enqueue", "retried")
			it.Due = it.Due.Add(time.Millisecond)
			return calls
		}, history.NotEarly, "retried"},
		{"two owners", func(calls []history.Call, _ *history.Final) []history.Call {
			_, it := find(calls, "claim", "lapsed")
			it.Until = it.Until.Add(time.Millisecond)
			return calls
		}, history.OneOwner, "lapsed"},
		{"an ack by who has lost it", func(calls []history.Call, _ *history.Final) []history.Call {
			last, it := find(calls, "settle", "lapsed")
			stale := *last
			_, first := find(calls, "claim", "lapsed")
			stale.Number, stale.Items = 99, []history.Item{*it}
			stale.Items[0].Token, stale.Items[0].Verdict = first.Token, storage.Release
			stale.Began, stale.Ended = last.Ended.Add(1), last.Ended.Add(2)
			return append(calls, stale)
		}, history.OneOwner, "lapsed"},
		{"a delivery of what was acknowledged", func(calls []history.Call, _ *history.Final) []history.Call {
			last, it := find(calls, "settle", "first")
			claim, _ := find(calls, "claim", "first")
			again := *claim
			again.Number, again.Began, again.Ended = 99, last.Ended.Add(1), last.Ended.Add(2)
			again.Items = []history.Item{{ID: "first", Seq: 4, Token: it.Token + 1<<40, Body: content(t, calls, "first"), Deliveries: 2}}
			return append(calls, again)
		}, history.OneOwner, "first"},
		{"a token of two messages", func(calls []history.Call, _ *history.Final) []history.Call {
			_, it := find(calls, "claim", "acked")
			claim, other := find(calls, "claim", "lapsed")
			again := *claim
			again.Number, again.Items = 99, []history.Item{*other}
			again.Items[0].Token = it.Token
			return append(calls, again)
		}, history.OneOwner, ""},
		{"two acks", func(calls []history.Call, _ *history.Final) []history.Call {
			last, _ := find(calls, "settle", "first")
			again := *last
			again.Number = 99
			return append(calls, again)
		}, history.OneOwner, "first"},
		{"a delivery that was not counted", func(calls []history.Call, _ *history.Final) []history.Call {
			for i := range calls {
				for k := range calls[i].Items {
					if it := &calls[i].Items[k]; calls[i].Op == "claim" && it.ID == "retried" {
						it.Deliveries = 1
					}
				}
			}
			return calls
		}, history.Attempts, "retried"},
		{"an attempt too many", func(calls []history.Call, _ *history.Final) []history.Call {
			_, it := find(calls, "claim", "retried")
			it.Attempts = 4
			return calls
		}, history.Attempts, "retried"},
		{"counts that do not add up", func(calls []history.Call, f *history.Final) []history.Call {
			f.Stats.Total.Acked++
			return calls
		}, history.Conservation, ""},
		{"damage", func(calls []history.Call, f *history.Final) []history.Call {
			f.Damage = []storage.Fix{{What: "record without place", Count: 1}}
			return calls
		}, history.Conservation, ""},
		{"out of order", func(calls []history.Call, _ *history.Final) []history.Call {
			for i := range calls {
				if calls[i].Op == "settle" && calls[i].Items[0].ID == "first" {
					calls[i].Items[0].Verdict = storage.Release
				}
			}
			return calls
		}, history.Order, "first"},
		{"two live records of an id", func(calls []history.Call, _ *history.Final) []history.Call {
			for i := range calls {
				if calls[i].Op == "settle" && calls[i].Items[0].ID == "acked" {
					calls[i].Items[0].Verdict = storage.Retry
				}
			}
			return calls
		}, history.Dedup, "acked"},
		{"more than the bound", func(calls []history.Call, f *history.Final) []history.Call {
			f.Stats.Config.DeadCount = 1
			f.Stats.Dead, f.Stats.Total.Enqueued = 5000, f.Stats.Total.Enqueued+5000
			return calls
		}, history.Bounded, ""},
		{"nobody takes what is due", func(calls []history.Call, f *history.Final) []history.Call {
			f.Stats.Now = f.Stats.Now.Add(2 * time.Hour)
			return calls
		}, history.Liveness, "acked"},
	} {
		t.Run(c.name, func(t *testing.T) {
			calls, final := story(t)
			calls = c.forge(calls, &final)
			r := history.Check(calls, final, history.Terms{Patience: time.Hour})
			found := slices.ContainsFunc(r.Violations, func(v history.Violation) bool {
				return v.Invariant == c.invariant && v.ID == c.id
			})
			assert.True(t, found, "want", c.invariant, "of", c.id, "got", r)
			if c.id != "" && c.id != "foundling" {
				assert.True(t, strings.Contains(r.String(), "enqueue "+c.id), "the story is told", r)
			}
		})
	}
}

func content(t *testing.T, calls []history.Call, id string) string {
	t.Helper()
	for _, c := range calls {
		for _, it := range c.Items {
			if c.Op == "enqueue" && it.ID == id {
				return it.Body
			}
		}
	}
	t.Fatalf("no enqueue of %s", id)
	return ""
}

// What a failover has lost is counted, and only what it can have lost.
func TestRewinds(t *testing.T) {
	forge := func() ([]history.Call, history.Final) {
		calls, final := story(t)
		final.Records = slices.DeleteFunc(final.Records, func(r storage.Record) bool { return r.ID == "waits" })
		final.Stats.Delayed--
		final.Stats.Total.Enqueued--
		return calls, final
	}
	calls, final := forge()
	began := calls[0].Began
	within := history.Terms{Patience: time.Hour, Rewinds: []history.Span{{From: began.Add(-1), To: began.Add(time.Hour)}}}
	r := history.Check(calls, final, within)
	assert.Equal(t, r.Violations, nil)
	assert.Equal(t, r.Rewound.Lost, 1)
	calls, final = forge()
	elsewhere := history.Terms{Patience: time.Hour, Rewinds: []history.Span{{From: began.Add(-time.Hour), To: began.Add(-1)}}}
	r = history.Check(calls, final, elsewhere)
	assert.Equal(t, len(r.Violations), 1)
	assert.Equal(t, r.Violations[0].Invariant, history.NoLoss)
}

// A call that did not return explains what would be a violation otherwise.
func TestUnknownCalls(t *testing.T) {
	calls, final := story(t)
	for i := range calls {
		if c := &calls[i]; c.Op == "settle" && c.Items[0].ID == "first" {
			c.Fate, c.Ended = history.Pending, time.Time{}
		}
	}
	assert.Equal(t, history.Check(calls, final, history.Terms{Patience: time.Hour}).Violations, nil)
}

// The last line of a process that was killed is not finished.
func TestReadOfWhatWasKilled(t *testing.T) {
	s := newScript(t)
	s.enqueue(storage.Record{ID: "a"})
	s.enqueue(storage.Record{ID: "b"})
	whole := s.log.String()
	calls, err := history.Read(strings.NewReader(whole[:len(whole)-10]))
	assert.NoError(t, err)
	assert.Equal(t, []history.Fate{calls[0].Fate, calls[1].Fate}, []history.Fate{history.OK, history.Pending})
	_, err = history.Read(strings.NewReader("{nonsense}\n"))
	assert.True(t, err != nil)
}

// Many goroutines work on one queue, some with errors that leave everything open.
func TestCrowd(t *testing.T) {
	store := memstore.New(memstore.Options{})
	var logs [4]bytes.Buffer
	var all sync.WaitGroup
	for p := range logs {
		r := history.NewRecorder(fmt.Sprint("process", p), &logs[p])
		e := r.Engine(store)
		all.Go(func() {
			crowd(t, e, rand.New(rand.NewPCG(uint64(p), 1)))
			assert.NoError(t, r.Err())
		})
	}
	all.Wait()
	calls, err := history.Read(&logs[0], &logs[1], &logs[2], &logs[3])
	assert.NoError(t, err)
	final, err := history.Look(t.Context(), store, "q")
	assert.NoError(t, err)
	r := history.Check(calls, final, history.Terms{Patience: time.Hour})
	assert.True(t, len(r.Violations) == 0, r)
	assert.True(t, r.Deliveries > 1000, r)
}

func crowd(t *testing.T, e storage.Engine, rnd *rand.Rand) {
	for i := range 1500 {
		ctx := t.Context()
		if i%50 == 0 { // a call that is cut off before or after it took effect: nobody knows
			cut, cancel := context.WithCancel(ctx)
			cancel()
			ctx = cut
		}
		rec := storage.Record{
			ID: fmt.Sprint(rnd.IntN(200)), Key: fmt.Sprint(rnd.IntN(5)), Body: []byte(fmt.Sprint(i)), MaxAttempts: rnd.IntN(4),
			OnLive: storage.OnLive(rnd.IntN(3)), Delay: time.Duration(rnd.IntN(3)) * time.Millisecond,
		}
		_, _ = e.Enqueue(ctx, time.Time{}, "q", []storage.Record{rec})
		got, _ := e.Claim(ctx, time.Time{}, storage.Claim{Queue: "q", Limit: 3, Lease: time.Duration(1+rnd.IntN(5)) * time.Millisecond})
		for _, r := range got.Records {
			if rnd.IntN(4) == 0 {
				_, _ = e.Extend(ctx, time.Time{}, 3*time.Millisecond, []storage.Receipt{r.Receipt("q")})
			}
			verdict := []storage.Verdict{storage.Ack, storage.Ack, storage.Retry, storage.Release, storage.Return, storage.Bury}[rnd.IntN(6)]
			if rnd.IntN(5) > 0 {
				_, _ = e.Settle(ctx, time.Time{}, []storage.Settlement{{Receipt: r.Receipt("q"), Verdict: verdict}})
			}
		}
		if i%20 == 0 {
			_ = e.Cancel(ctx, time.Time{}, "q", fmt.Sprint(rnd.IntN(200)), true)
		}
	}
}
