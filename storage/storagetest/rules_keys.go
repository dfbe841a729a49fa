// SPDX-License-Identifier: Apache-2.0

package storagetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/storage"
)

var keyRules = []rule{
	{name: "R03KeysTakeTurns", timed: true, test: r03KeysTakeTurns},
	{name: "R03BusyKeyStarvesNobody", timed: true, test: r03BusyKeyStarvesNobody},
	{name: "R03InsideAKey", test: r03InsideAKey},
	{name: "R03PriorityOfHeads", test: r03PriorityOfHeads},
	{name: "R03KeysBesideKeyless", test: r03KeysBesideKeyless},
	{name: "R03PastDueDoesNotPush", test: r03PastDueDoesNotPush},
	{name: "R03Scope", timed: true, test: r03Scope},
	{name: "R03ScopeNext", test: r03ScopeNext},
	{name: "R03Group", timed: true, test: r03Group},
	{name: "R03KeyLimit", timed: true, test: r03KeyLimit},
	{name: "R03KeyLimitChanges", test: r03KeyLimitChanges},
	{name: "R03KeysListed", test: r03KeysListed},
	{name: "R08Scopes", test: r08Scopes},
	{name: "R08KeyIsFree", test: r08KeyIsFree},
}

// keyed returns n records of a key, due now.
func keyed(key string, n int) []storage.Record {
	recs := make([]storage.Record, n)
	for i := range recs {
		recs[i] = storage.Record{ID: fmt.Sprintf("%s%d", key, i), Key: key}
	}
	return recs
}

// claimAs makes a claim in the harness's queue.
func (h *harness) claimAs(c storage.Claim) storage.Claimed {
	h.t.Helper()
	c.Queue, c.Lease = h.queue, time.Minute
	got, err := h.engine.Claim(h.ctx(), h.now, c)
	assert.NoError(h.t, err)
	return got
}

// R3: keys take turns, whatever came first and however the claims are cut.
func r03KeysTakeTurns(t *testing.T, h *harness) {
	h.enqueue(keyed("a", 4)...)
	h.enqueue(keyed("b", 2)...)
	h.enqueue(keyed("c", 1)...)
	got := ids(h.claim(2, time.Minute).Records)
	got = append(got, ids(h.claim(10, time.Minute).Records)...)
	assert.Equal(t, got, []string{"a0", "b0", "c0", "a1", "b1", "a2", "a3"})
}

// R3: a key that waits is served within as many claims as there are active keys, while others are
// filled again and again.
func r03BusyKeyStarvesNobody(t *testing.T, h *harness) {
	const keys = 6
	waits := map[string]int{}
	next := 0
	fill := func(key string) {
		next++
		h.enqueue(storage.Record{ID: fmt.Sprint(next), Key: key})
	}
	for i := range keys {
		fill(fmt.Sprint("k", i))
	}
	for range 200 {
		fill("k0") // the busy one
		if next%7 == 0 {
			fill(fmt.Sprint("k", next%keys))
		}
		served := h.claimOne(time.Minute)
		h.must(h.settle(served, storage.Ack, 0, ""))
		active, err := h.engine.Keys(h.ctx(), h.now, h.queue, storage.KeyFilter{Limit: 100})
		assert.NoError(t, err)
		delete(waits, served.Key)
		for _, k := range active {
			if k.Key != served.Key {
				waits[k.Key]++
			}
			if waits[k.Key] > keys {
				t.Fatalf("key %s has waited for %d claims, there are %d keys", k.Key, waits[k.Key], keys)
			}
		}
	}
}

// R3: inside a key due time counts, then arrival; a retry does not hold back what is behind.
func r03InsideAKey(t *testing.T, h *harness) {
	h.enqueue(
		storage.Record{ID: "second", Key: "k", Due: h.now.Add(-time.Second)},
		storage.Record{ID: "third", Key: "k", Due: h.now.Add(-time.Second)},
		storage.Record{ID: "first", Key: "k", Due: h.now.Add(-2 * time.Second)},
		storage.Record{ID: "later", Key: "k", Due: h.now.Add(time.Second)},
	)
	first := h.claimOne(time.Minute)
	h.must(h.settle(first, storage.Retry, time.Hour, "again"))
	c := h.claim(10, time.Minute)
	assert.Equal(t, []string{first.ID, c.Records[0].ID, c.Records[1].ID}, []string{"first", "second", "third"})
	assert.Equal(t, []any{len(c.Records), c.Next}, []any{2, time.Second})
	h.pass(time.Second)
	assert.Equal(t, h.claimOne(time.Minute).ID, "later")
}

// R3: priority counts between the heads of keys, not inside one.
func r03PriorityOfHeads(t *testing.T, h *harness) {
	h.enqueue(
		storage.Record{ID: "a-low", Key: "a"}, storage.Record{ID: "a-high", Key: "a", Priority: 9},
		storage.Record{ID: "b-mid", Key: "b", Priority: 5}, storage.Record{ID: "b-low", Key: "b"},
		storage.Record{ID: "free", Priority: 1},
	)
	assert.Equal(t, ids(h.claim(10, time.Minute).Records), []string{"b-mid", "free", "a-low", "a-high", "b-low"})
}

// R3: a record without a key stands for itself, and a key that was served comes after those that
// were due before.
func r03KeysBesideKeyless(t *testing.T, h *harness) {
	h.enqueue(keyed("a", 3)...)
	h.enqueue(storage.Record{ID: "x"}, storage.Record{ID: "y"})
	h.enqueue(keyed("b", 1)...)
	assert.Equal(t, ids(h.claim(3, time.Minute).Records), []string{"a0", "x", "y"})
	h.pass(time.Second)
	h.enqueue(storage.Record{ID: "z"})
	assert.Equal(t, ids(h.claim(10, time.Minute).Records), []string{"b0", "a1", "z", "a2"})
}

// R3: due times in the past do not let a key pass those that wait already.
func r03PastDueDoesNotPush(t *testing.T, h *harness) {
	h.enqueue(keyed("waits", 1)...)
	h.pass(time.Second)
	for i := range 5 {
		h.enqueue(storage.Record{ID: fmt.Sprint(i), Key: fmt.Sprint("pushes", i), Due: h.now.Add(-time.Hour)})
	}
	assert.Equal(t, h.claimOne(time.Minute).ID, "waits0")
}

// R3: a claim may ask for certain keys, or for all but certain ones.
func r03Scope(t *testing.T, h *harness) {
	for _, k := range []string{"a", "b", "c"} {
		h.enqueue(keyed(k, 2)...)
	}
	h.enqueue(storage.Record{ID: "free"})
	assert.Equal(t, ids(h.claimAs(storage.Claim{Limit: 3, Keys: []string{"b", "c"}}).Records), []string{"b0", "c0", "b1"})
	assert.Equal(t, ids(h.claimAs(storage.Claim{Limit: 9, Except: []string{"a", ""}}).Records), []string{"c1"})
	assert.Equal(t, ids(h.claimAs(storage.Claim{Limit: 9, Keys: []string{"", "nobody"}}).Records), []string{"free"})
	assert.Equal(t, ids(h.claimAs(storage.Claim{Limit: 9, Except: []string{"c"}}).Records), []string{"a0", "a1"})

	_, err := h.engine.Claim(h.ctx(), h.now, storage.Claim{Queue: h.queue, Limit: 1, Lease: time.Minute, Keys: []string{"a"}, Except: []string{"b"}})
	assert.ErrorIs(t, err, storage.ErrInvalid)
	_, err = h.engine.Claim(h.ctx(), h.now, storage.Claim{Queue: h.queue, Limit: 1, Lease: time.Minute, Keys: make([]string, storage.MaxKeys+1)})
	assert.ErrorIs(t, err, storage.ErrInvalid)
}

// R3: Next is about what was asked for.
func r03ScopeNext(t *testing.T, h *harness) {
	h.enqueue(
		storage.Record{ID: "a", Key: "a", Delay: time.Second},
		storage.Record{ID: "b", Key: "b", Delay: time.Minute},
		storage.Record{ID: "free", Delay: time.Hour},
	)
	for _, c := range []struct {
		claim storage.Claim
		next  time.Duration
	}{
		{storage.Claim{}, time.Second},
		{storage.Claim{Keys: []string{"b"}}, time.Minute},
		{storage.Claim{Except: []string{"a"}}, time.Minute},
		{storage.Claim{Except: []string{"a", "b"}}, time.Hour},
		{storage.Claim{Keys: []string{""}}, time.Hour},
		{storage.Claim{Keys: []string{"nobody"}}, storage.Forever},
	} {
		c.claim.Limit = 1
		got := h.claimAs(c.claim)
		assert.Equal(t, []any{len(got.Records), got.Next}, []any{0, c.next}, fmt.Sprint(c.claim))
	}
}

// R3: a claim for a group gets a run of one key.
func r03Group(t *testing.T, h *harness) {
	h.enqueue(keyed("a", 5)...)
	h.enqueue(keyed("b", 2)...)
	h.enqueue(storage.Record{ID: "x"}, storage.Record{ID: "y"})
	var got [][]string
	for range 5 {
		got = append(got, ids(h.claimAs(storage.Claim{Limit: 4, Group: true}).Records))
	}
	assert.Equal(t, got, [][]string{{"a0", "a1", "a2", "a3"}, {"b0", "b1"}, {"x", "y"}, {"a4"}, {}})
}

// R3: no more records of a key are leased at a time than its limit.
func r03KeyLimit(t *testing.T, h *harness) {
	h.configure(storage.ConfigEdit{KeyLimit: new(2)})
	h.enqueue(keyed("a", 4)...)
	h.enqueue(keyed("b", 1)...)
	first := h.claim(10, time.Minute)
	assert.Equal(t, ids(first.Records), []string{"a0", "b0", "a1"})
	h.claimNone()
	assert.True(t, h.extend(first.Records[0], time.Hour))
	h.claimNone()
	h.must(h.settle(first.Records[0], storage.Ack, 0, ""))
	assert.Equal(t, ids(h.claimAs(storage.Claim{Limit: 10, Group: true}).Records), []string{"a2"})
	h.must(h.settle(first.Records[2], storage.Bury, 0, ""))
	assert.Equal(t, ids(h.claim(10, unit).Records), []string{"a3"})
	h.counts(0, 0, 3, 1)
}

// R3: a limit that changes counts at once.
func r03KeyLimitChanges(t *testing.T, h *harness) {
	h.configure(storage.ConfigEdit{KeyLimit: new(1)})
	h.enqueue(keyed("a", 4)...)
	h.claimOne(time.Minute)
	h.claimNone()
	h.configure(storage.ConfigEdit{KeyLimit: new(3)})
	assert.Equal(t, ids(h.claim(10, time.Minute).Records), []string{"a1", "a2"})
	h.configure(storage.ConfigEdit{KeyLimit: new(0)})
	assert.Equal(t, ids(h.claim(10, time.Minute).Records), []string{"a3"})
}

// Keys are listed by name, by size and by age, and cost nothing when they are gone.
func r03KeysListed(t *testing.T, h *harness) {
	list := func(f storage.KeyFilter) []string {
		if f.Limit == 0 {
			f.Limit = 10
		}
		keys, err := h.engine.Keys(h.ctx(), h.now, h.queue, f)
		assert.NoError(t, err)
		out := make([]string, len(keys))
		for i, k := range keys {
			out[i] = fmt.Sprintf("%s %d+%d", k.Key, k.Waiting, k.Leased)
		}
		return out
	}
	h.enqueue(keyed("b", 1)...)
	h.pass(time.Millisecond)
	h.enqueue(keyed("a", 3)...)
	h.pass(time.Millisecond)
	h.enqueue(keyed("c", 2)...)
	h.enqueue(storage.Record{ID: "free"})
	assert.Equal(t, list(storage.KeyFilter{}), []string{"a 3+0", "b 1+0", "c 2+0"})
	assert.Equal(t, list(storage.KeyFilter{After: "a", Limit: 1}), []string{"b 1+0"})
	assert.Equal(t, list(storage.KeyFilter{By: storage.Largest}), []string{"a 3+0", "c 2+0", "b 1+0"})
	assert.Equal(t, list(storage.KeyFilter{By: storage.Oldest, Limit: 2}), []string{"b 1+0", "a 3+0"})
	assert.Equal(t, list(storage.KeyFilter{Key: "c"}), []string{"c 2+0"})
	assert.Equal(t, list(storage.KeyFilter{Key: "nobody"}), []string{})
	assert.Equal(t, h.stats().Keys, int64(3))

	held := h.claim(10, time.Minute).Records
	assert.Equal(t, list(storage.KeyFilter{By: storage.Largest}), []string{"a 0+3", "b 0+1", "c 0+2"})
	assert.Equal(t, list(storage.KeyFilter{By: storage.Oldest}), []string{})
	for _, r := range held {
		h.must(h.settle(r, storage.Ack, 0, ""))
	}
	assert.Equal(t, list(storage.KeyFilter{}), []string{})
	assert.Equal(t, h.stats().Keys, int64(0))
	for _, f := range []storage.KeyFilter{{Limit: 1, By: 9}, {Limit: 0}, {Limit: 1, By: storage.Largest, After: "a"}} {
		_, err := h.engine.Keys(h.ctx(), h.now, h.queue, f)
		assert.ErrorIs(t, err, storage.ErrInvalid)
	}
}

// R8: who asks for a part of a queue is woken by what is in it, also after others have claimed
// theirs and when something else was due before.
func r08Scopes(t *testing.T, h *harness) {
	h.now = time.Time{}
	scopes := []storage.Scope{
		{Queue: h.queue, Keys: []string{"hot"}},
		{Queue: h.queue, Except: []string{"hot"}},
	}
	claims := []storage.Claim{{Limit: 10, Keys: []string{"hot"}}, {Limit: 10, Except: []string{"hot"}}}
	for range 3 { // each claims until there is nothing, the notices of the other notwithstanding
		for _, c := range claims {
			for len(h.claimAs(c).Records) > 0 {
			}
		}
	}
	for i, key := range []string{"hot", "other", "hot", "", "hot"} {
		h.enqueue(storage.Record{ID: fmt.Sprint("due later ", i), Key: key, Delay: time.Hour})
		h.enqueue(storage.Record{ID: fmt.Sprint(i), Key: key})
		scope := 1
		if key == "hot" {
			scope = 0
		}
		h.claimAs(claims[1-scope]) // must not take the notice away
		began := time.Now()
		for {
			_, err := h.engine.Wait(h.ctx(), scopes[scope:scope+1], patience)
			assert.NoError(t, err)
			if got := h.claimAs(claims[scope]); len(got.Records) > 0 {
				assert.Equal(t, ids(got.Records), []string{fmt.Sprint(i)})
				break
			}
			if time.Since(began) > patience {
				t.Fatalf("slept through %d", i)
			}
		}
	}
	_, err := h.engine.Wait(h.ctx(), []storage.Scope{{Queue: h.queue, Keys: []string{"a"}, Except: []string{"b"}}}, 0)
	assert.ErrorIs(t, err, storage.ErrInvalid)
}

// R8: an ack that makes its key claimable again wakes who waits.
func r08KeyIsFree(t *testing.T, h *harness) {
	h.now = time.Time{}
	h.configure(storage.ConfigEdit{KeyLimit: new(1)})
	h.enqueue(keyed("k", 2)...)
	held := h.claimOne(time.Hour)
	h.claimNone()
	acked := make(chan error, 1)
	go func() {
		_, err := h.engine.Settle(h.ctx(), time.Time{}, []storage.Settlement{{Receipt: held.Receipt(h.queue), Verdict: storage.Ack}})
		acked <- err
	}()
	h.awake("the key is free")
	assert.NoError(t, <-acked)
	assert.Equal(t, h.claimOne(time.Minute).ID, "k1")
}
