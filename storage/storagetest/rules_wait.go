// SPDX-License-Identifier: Apache-2.0

package storagetest

import (
	"context"
	"testing"
	"time"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/storage"
)

var waitRules = []rule{
	{name: "R08WakesForEachCause", test: r08WakesForEachCause},
	{name: "R08BetweenClaimAndWait", test: r08BetweenClaimAndWait},
	{name: "R08ManyQueues", test: r08ManyQueues},
	{name: "R08TimePasses", test: r08TimePasses},
	{name: "R08Canceled", test: r08Canceled},
	{name: "R08SoonerDue", test: r08SoonerDue},
	{name: "R08TwoClaimers", test: r08TwoClaimers},
}

// patience is how long a wait may take before the test calls it asleep. It bounds a failure, not a
// speed: speed is measured elsewhere, on an idle machine.
const patience = 20 * time.Second

// awake fails unless a wait on the harness's queue ends with a notice.
func (h *harness) awake(what string) {
	h.t.Helper()
	began := time.Now()
	for time.Since(began) < patience {
		ready, err := h.engine.Wait(h.ctx(), []storage.Scope{{Queue: h.queue}}, patience)
		assert.NoError(h.t, err)
		if len(ready) > 0 {
			assert.Equal(h.t, ready, []int{0})
			return
		}
	}
	h.t.Fatalf("slept %s through: %s", time.Since(began), what)
}

// R8: everything that makes something claimable wakes who waits.
func r08WakesForEachCause(t *testing.T, h *harness) {
	h.now = time.Time{}
	var held storage.Record
	lease := func(id string) {
		h.enqueue(storage.Record{ID: id})
		held = h.claimOne(time.Hour)
	}
	causes := []struct {
		name    string
		prepare func()
		cause   func()
	}{
		{"enqueue", func() {}, func() { h.enqueue(storage.Record{ID: "enqueue"}) }},
		{"retry", func() { lease("retry") }, func() { h.must(h.settle(held, storage.Retry, 0, "")) }},
		{"release", func() { lease("release") }, func() { h.must(h.settle(held, storage.Release, 0, "")) }},
		{"a successor that starts", func() {
			lease("rerun")
			h.enqueue(storage.Record{ID: "rerun", OnLive: storage.Rerun})
		}, func() { h.must(h.settle(held, storage.Ack, 0, "")) }},
		{"edit", func() { h.enqueue(storage.Record{ID: "edit", Delay: time.Hour}) }, func() {
			_, err := h.engine.Edit(h.ctx(), h.now, h.queue, "edit", storage.Edit{Delay: new(time.Duration(0))})
			assert.NoError(t, err)
		}},
		{"redrive", func() {
			lease("redrive")
			h.must(h.settle(held, storage.Bury, 0, ""))
		}, func() {
			b, err := h.engine.Redrive(h.ctx(), h.now, h.queue, storage.Filter{State: storage.Dead, Limit: 10})
			assert.NoError(t, err)
			assert.Equal(t, b.Count, 1)
		}},
		{"resume", func() {
			h.configure(storage.ConfigEdit{Paused: new(true)})
			h.enqueue(storage.Record{ID: "paused"})
			assert.Equal(t, h.claimNone().Next, storage.Forever)
		}, func() { h.configure(storage.ConfigEdit{Paused: new(false)}) }},
	}
	for _, c := range causes {
		c.prepare()
		h.claimNone()
		done := make(chan struct{})
		go func() {
			defer close(done)
			c.cause()
		}()
		h.awake(c.name)
		<-done
		h.must(h.settle(h.claimOne(time.Minute), storage.Ack, 0, ""))
	}
}

// R8: a notice between Claim and Wait is not missed, and lasts until the next Claim.
func r08BetweenClaimAndWait(t *testing.T, h *harness) {
	h.now = time.Time{}
	h.claimNone()
	h.enqueue(storage.Record{ID: "a"})
	h.awake("enqueued before the wait")
	assert.Equal(t, h.claimOne(time.Minute).ID, "a")
}

// R8: one wait covers all the queues of a process, and names the one that is ready.
func r08ManyQueues(t *testing.T, h *harness) {
	queues := make([]storage.Scope, 20)
	for i := range queues {
		queues[i].Queue = NewQueueName()
		_, err := h.engine.Claim(h.ctx(), time.Time{}, storage.Claim{Queue: queues[i].Queue, Limit: 1, Lease: time.Minute})
		assert.NoError(t, err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := h.engine.Enqueue(h.ctx(), time.Time{}, queues[13].Queue, []storage.Record{{ID: "a"}})
		done <- err
	}()
	ready, err := h.engine.Wait(h.ctx(), queues, patience)
	assert.NoError(t, err)
	assert.Equal(t, ready, []int{13})
	assert.NoError(t, <-done)
}

// R8: a wait for which nothing happens ends after its time, with no queue.
func r08TimePasses(t *testing.T, h *harness) {
	h.now = time.Time{}
	h.enqueue(storage.Record{ID: "a", Delay: unit})
	c := h.claim(1, time.Minute)
	began := time.Now()
	for len(c.Records) == 0 && time.Since(began) < patience {
		_, err := h.engine.Wait(h.ctx(), []storage.Scope{{Queue: h.queue}}, c.Next)
		assert.NoError(t, err)
		c = h.claim(1, time.Minute)
	}
	assert.Equal(t, ids(c.Records), []string{"a"})
	assert.True(t, !c.Now.Before(c.Records[0].Due), "early")
}

// R8: a wait ends with its context.
func r08Canceled(t *testing.T, h *harness) {
	ctx, cancel := context.WithCancel(h.ctx())
	done := make(chan error, 1)
	go func() {
		_, err := h.engine.Wait(ctx, []storage.Scope{{Queue: h.queue}}, storage.Forever)
		done <- err
	}()
	cancel()
	assert.ErrorIs(t, <-done, context.Canceled)
}

// R8: a message due before what the sleeper waits for wakes it, though it is not due yet.
func r08SoonerDue(t *testing.T, h *harness) {
	h.now = time.Time{}
	h.enqueue(storage.Record{ID: "later", Delay: time.Hour})
	h.claimNone()
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.enqueue(storage.Record{ID: "sooner", Delay: time.Minute})
	}()
	h.awake("a sooner due time")
	<-done
	assert.True(t, h.claimNone().Next <= time.Minute)
}

// R8: a claim of one caller does not take away what another one of the same engine waits for.
func r08TwoClaimers(t *testing.T, h *harness) {
	h.now = time.Time{}
	h.claimNone() // the other caller's, which is told that there will be nothing
	h.enqueue(storage.Record{ID: "a"}, storage.Record{ID: "b"})
	assert.Equal(t, h.claim(1, time.Hour).Next, 0)
	h.awake("more was left behind")
	h.must(h.settle(h.claimOne(time.Hour), storage.Ack, 0, ""))

	h.enqueue(storage.Record{ID: "c", Delay: unit})
	assert.True(t, h.claimNone().Next <= unit)
	h.awake("a due time that another claim was told")
	h.claimOne(time.Minute)
}

// closed: Close ends what is under way, and every later call says ErrClosed.
func closed(t *testing.T, engine storage.Engine) {
	queue := NewQueueName()
	done := make(chan error, 1)
	go func() {
		_, err := engine.Wait(t.Context(), []storage.Scope{{Queue: queue}}, storage.Forever)
		done <- err
	}()
	assert.NoError(t, engine.Close())
	assert.ErrorIs(t, <-done, storage.ErrClosed)
	_, err := engine.Enqueue(t.Context(), time.Time{}, queue, []storage.Record{{ID: "a"}})
	assert.ErrorIs(t, err, storage.ErrClosed)
	_, err = engine.Claim(t.Context(), time.Time{}, storage.Claim{Queue: queue, Limit: 1, Lease: time.Minute})
	assert.ErrorIs(t, err, storage.ErrClosed)
	_, err = engine.Settle(t.Context(), time.Time{}, []storage.Settlement{{Receipt: storage.Receipt{Queue: queue, ID: "a"}, Verdict: storage.Ack}})
	assert.ErrorIs(t, err, storage.ErrClosed)
	_, err = engine.Wait(t.Context(), []storage.Scope{{Queue: queue}}, time.Minute)
	assert.ErrorIs(t, err, storage.ErrClosed)
	_, err = engine.Get(t.Context(), time.Time{}, queue, "a")
	assert.ErrorIs(t, err, storage.ErrClosed)
	_, err = engine.Queues(t.Context(), "", 1)
	assert.ErrorIs(t, err, storage.ErrClosed)
	assert.NoError(t, engine.Close(), "closing twice does no harm")
}
