// SPDX-License-Identifier: Apache-2.0

// Package storagetest proves that an engine keeps the rules of package storage. An engine's tests
// call Run, and that is all they need to be told apart from the other engines by nobody:
//
//	func TestEngine(t *testing.T) {
//		storagetest.Run(t, func(t *testing.T) storage.Engine { return myengine.New() })
//	}
//
// The suite has no switches for features: an engine that cannot keep a rule is not an engine. It
// uses queue names of its own, so that an engine may be shared with other tests.
package storagetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/storage"
)

// Open returns an engine with the default limits, and closes it when the test ends. Two calls may
// return engines over the same stored records or over different ones.
type Open func(t *testing.T) storage.Engine

// Run tests an engine: the rules one by one, random programs against package memstore, and a crowd
// of goroutines on the real clock.
func Run(t *testing.T, open Open) {
	t.Run("Rules", func(t *testing.T) { Rules(t, open) })
	t.Run("Programs", func(t *testing.T) { Programs(t, open) })
	t.Run("LockPrograms", func(t *testing.T) { LockPrograms(t, open) })
	t.Run("Crowd", func(t *testing.T) { Crowd(t, open) })
}

// rule is a test of one rule. A timed one runs with explicit instants and again on the engine's own
// clock, in real time.
type rule struct {
	name  string
	timed bool
	test  func(t *testing.T, h *harness)
}

// Rules runs a subtest for every rule.
func Rules(t *testing.T, open Open) { RulesBut(t, open, nil) }

// RulesBut is Rules without some, for an engine opened in a way that relaxes them: by name, each with the
// reason.
func RulesBut(t *testing.T, open Open, but map[string]string) {
	engine := open(t)
	t.Run("All", func(t *testing.T) { // ends when its parallel subtests have, before the engine is closed
		for _, r := range rules() {
			if reason, ok := but[r.name]; ok {
				t.Logf("without %s: %s", r.name, reason)
				continue
			}
			t.Run(r.name, func(t *testing.T) {
				t.Parallel()
				r.test(t, newHarness(t, engine, false))
			})
			if r.timed {
				t.Run(r.name+"OwnClock", func(t *testing.T) {
					t.Parallel()
					r.test(t, newHarness(t, engine, true))
				})
			}
		}
	})
	t.Run("Closed", func(t *testing.T) {
		e := open(t)
		closedLocks(t, e, func() { closed(t, e) })
	})
}

func rules() []rule {
	var all []rule
	for _, group := range [][]rule{
		enqueueRules, identityRules, dueRules, orderRules, leaseRules, attemptRules, waitRules,
		byIDRules, expiryRules, countRules, pauseRules, listRules, callRules,
		keyRules, orderedRules, boundRules, retainRules,
		lockRules, lockWaitRules, topicRules,
	} {
		all = append(all, group...)
	}
	return all
}

// harness is an engine, a queue nobody else uses, and a clock.
type harness struct {
	t      *testing.T
	engine storage.Engine
	queue  string
	now    time.Time // zero on the engine's own clock
	own    bool
}

// epoch is where explicit instants begin.
var epoch = time.UnixMilli(1_700_000_000_000).UTC()

// unit is the length that rules about time are told in. It is long against the time of a call.
const unit = 300 * time.Millisecond

func newHarness(t *testing.T, engine storage.Engine, own bool) *harness {
	h := &harness{t: t, engine: engine, queue: NewQueueName(), own: own}
	if !own {
		h.now = epoch
	}
	return h
}

// NewQueueName returns a name that no other test uses.
func NewQueueName() string {
	return "t" + strconv.FormatUint(rand.Uint64(), 36)
}

func (h *harness) ctx() context.Context { return h.t.Context() }

// pass lets d go by on the clock of the test.
func (h *harness) pass(d time.Duration) {
	h.t.Helper()
	if !h.own {
		h.now = h.now.Add(d)
		return
	}
	h.until(h.instant().Add(d))
}

// until lets time go by until an instant of the test's clock.
func (h *harness) until(at time.Time) {
	h.t.Helper()
	if !h.own {
		h.now = at
		return
	}
	nobody := NewQueueName()
	for {
		left := at.Sub(h.instant())
		if left <= 0 {
			return
		}
		_, err := h.engine.Wait(h.ctx(), []storage.Scope{{Queue: nobody}}, left)
		assert.NoError(h.t, err)
	}
}

// instant is what the test's clock shows.
func (h *harness) instant() time.Time {
	h.t.Helper()
	if !h.own {
		return h.now
	}
	return h.stats().Now
}

// enqueue stores records and fails unless all of them are stored, replaced or rerun.
func (h *harness) enqueue(recs ...storage.Record) []storage.EnqueueResult {
	h.t.Helper()
	results := h.try(recs...)
	for i, r := range results {
		if r.Err != nil || r.Outcome == storage.Refused || r.Outcome == storage.Duplicate {
			h.t.Fatalf("got %s (%v) for %q, want it stored", r.Outcome, r.Err, recs[i].ID)
		}
	}
	return results
}

// try enqueues and returns whatever becomes of the records.
func (h *harness) try(recs ...storage.Record) []storage.EnqueueResult {
	h.t.Helper()
	results, err := h.engine.Enqueue(h.ctx(), h.now, h.queue, recs)
	assert.NoError(h.t, err)
	assert.Equal(h.t, len(results), len(recs))
	return results
}

// claim asks for up to limit records.
func (h *harness) claim(limit int, lease time.Duration) storage.Claimed {
	h.t.Helper()
	c, err := h.engine.Claim(h.ctx(), h.now, storage.Claim{Queue: h.queue, Limit: limit, Lease: lease, By: "tester"})
	assert.NoError(h.t, err)
	return c
}

// claimOne claims one record and fails if there is none.
func (h *harness) claimOne(lease time.Duration) storage.Record {
	h.t.Helper()
	c := h.claim(1, lease)
	if len(c.Records) != 1 {
		h.t.Fatalf("got %d records, want 1 claimable (next in %s)", len(c.Records), c.Next)
	}
	return c.Records[0]
}

// claimNone fails if there is something to claim.
func (h *harness) claimNone() storage.Claimed {
	h.t.Helper()
	c := h.claim(10, time.Minute)
	if len(c.Records) != 0 {
		h.t.Fatalf("got %v at %s, want nothing claimable", ids(c.Records), c.Now)
	}
	return c
}

// settle ends the lease of a record and says whether it was still held.
func (h *harness) settle(r storage.Record, v storage.Verdict, delay time.Duration, reason string) bool {
	h.t.Helper()
	return h.settleReceipt(storage.Settlement{Receipt: r.Receipt(h.queue), Verdict: v, Delay: delay, Reason: reason})
}

func (h *harness) settleReceipt(s storage.Settlement) bool {
	h.t.Helper()
	lost, err := h.engine.Settle(h.ctx(), h.now, []storage.Settlement{s})
	assert.NoError(h.t, err)
	if len(lost) > 0 {
		assert.Equal(h.t, lost, []storage.Receipt{s.Receipt})
	}
	return len(lost) == 0
}

// must fails unless a settlement took effect.
func (h *harness) must(settled bool) {
	h.t.Helper()
	assert.True(h.t, settled, "the lease was lost")
}

func (h *harness) extend(r storage.Record, lease time.Duration) bool {
	h.t.Helper()
	lost, err := h.engine.Extend(h.ctx(), h.now, lease, []storage.Receipt{r.Receipt(h.queue)})
	assert.NoError(h.t, err)
	return len(lost) == 0
}

func (h *harness) get(id string) storage.Record {
	h.t.Helper()
	r, err := h.engine.Get(h.ctx(), h.now, h.queue, id)
	assert.NoError(h.t, err)
	return r
}

// gone fails unless no record has the id.
func (h *harness) gone(id string) {
	h.t.Helper()
	_, err := h.engine.Get(h.ctx(), h.now, h.queue, id)
	assert.ErrorIs(h.t, err, storage.ErrNotFound)
}

func (h *harness) stats() storage.Stats {
	h.t.Helper()
	st, err := h.engine.Stats(h.ctx(), h.now, h.queue)
	assert.NoError(h.t, err)
	return st
}

func (h *harness) configure(e storage.ConfigEdit) {
	h.t.Helper()
	_, err := h.engine.Configure(h.ctx(), h.queue, e)
	assert.NoError(h.t, err)
}

// counts fails unless the queue holds so many records of each state.
func (h *harness) counts(delayed, ready, leased, dead int64) {
	h.t.Helper()
	st := h.stats()
	got := fmt.Sprintf("delayed %d, ready %d, leased %d, dead %d", st.Delayed, st.Ready, st.Leased, st.Dead)
	want := fmt.Sprintf("delayed %d, ready %d, leased %d, dead %d", delayed, ready, leased, dead)
	assert.Equal(h.t, got, want)
}

func ids(recs []storage.Record) []string {
	out := make([]string, len(recs))
	for i, r := range recs {
		out[i] = r.ID
	}
	return out
}

func outcomes(results []storage.EnqueueResult) []storage.Outcome {
	out := make([]storage.Outcome, len(results))
	for i, r := range results {
		out[i] = r.Outcome
	}
	return out
}
