// SPDX-License-Identifier: Apache-2.0

package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/internal/redistest"
	"github.com/bidemq/bide/redisstore"
	"github.com/bidemq/bide/storage"
	"github.com/bidemq/bide/storage/storagetest"
)

// bounded is a server of its own, so that what its scripts do can be counted.
type bounded struct {
	*testing.T
	*redisstore.Store
	server *redistest.Server
	queue  string
}

func newBounded(t *testing.T, e storage.ConfigEdit) *bounded {
	t.Helper()
	server := redistest.Start(t)
	b := &bounded{T: t, Store: open(t, server.URL()), server: server, queue: storagetest.NewQueueName()}
	b.configure(e)
	return b
}

func (b *bounded) configure(e storage.ConfigEdit) {
	b.Helper()
	_, err := b.Configure(b.Context(), b.queue, e)
	assert.NoError(b, err)
}

// fill enqueues n records made from the first one.
func (b *bounded) fill(n int, r storage.Record) []storage.EnqueueResult {
	b.Helper()
	var results []storage.EnqueueResult
	for from := 0; from < n; from += storage.MaxBatch {
		recs := make([]storage.Record, min(storage.MaxBatch, n-from))
		for i := range recs {
			recs[i] = r
			recs[i].ID = fmt.Sprint(r.ID, from+i)
		}
		results = append(results, enqueue(b, b.Store, b.queue, recs...)...)
	}
	return results
}

func (b *bounded) take(c storage.Claim) storage.Claimed {
	b.Helper()
	c.Queue, c.Lease = b.queue, time.Hour
	claimed, err := b.Claim(b.Context(), time.Time{}, c)
	assert.NoError(b, err)
	return claimed
}

func (b *bounded) settle(verdict storage.Verdict, recs ...storage.Record) {
	b.Helper()
	var ss []storage.Settlement
	for _, r := range recs {
		ss = append(ss, storage.Settlement{Receipt: r.Receipt(b.queue), Verdict: verdict})
	}
	lost, err := b.Settle(b.Context(), time.Time{}, ss)
	assert.NoError(b, err)
	assert.Equal(b, len(lost), 0)
}

// inner is how many commands the server runs while something is done.
func (b *bounded) inner(what string, do func()) int {
	b.Helper()
	before := commands(b.T, b.server)
	do()
	n := commands(b.T, b.server) - before
	b.Logf("%s: %d commands", what, n)
	return n
}

// R11: the records of a run go back one by one, however long it is.
func TestARunGoesBackOnce(t *testing.T) {
	t.Parallel()
	b := newBounded(t, storage.ConfigEdit{Ordered: new(true)})
	b.fill(1000, storage.Record{Key: "k", ExpireIn: time.Hour})
	c := b.take(storage.Claim{Limit: 1000, Group: true})
	assert.Equal(t, len(c.Records), 1000)
	assert.True(t, b.inner("retry", func() { b.settle(storage.Retry, c.Records[0]) }) < 10_000)
	st := stats(t, b, b.queue)
	assert.Equal(t, []int64{st.Ready, st.Leased, st.Total.Released}, []int64{1000, 0, 999})
}

// R11: when the leases of many runs end together, no script takes back all of them.
func TestManyRunsGoBackInSteps(t *testing.T) {
	t.Parallel()
	b := newBounded(t, storage.ConfigEdit{Ordered: new(true)})
	const runs, length = 20, 250
	for i := range runs {
		b.fill(length, storage.Record{ID: fmt.Sprint("r", i, "-"), Key: fmt.Sprint("k", i)})
	}
	for range runs {
		c, err := b.Claim(t.Context(), time.Time{}, storage.Claim{Queue: b.queue, Limit: length, Lease: 300 * time.Millisecond, Group: true})
		assert.NoError(t, err)
		assert.Equal(t, len(c.Records), length)
	}
	most := 0
	redistest.Until(t, "all are taken back", func() bool {
		var st storage.Stats
		most = max(most, b.inner("stats", func() { st = stats(t, b, b.queue) }))
		return st.Leased == 0
	})
	assert.True(t, most < 20_000, most)
	st := stats(t, b, b.queue)
	assert.Equal(t, []int64{st.Ready, st.Total.Lapsed, st.Total.Released}, []int64{runs * length, runs, runs * (length - 1)})
}

// R13: a claim leaves to the next one what has expired in great number.
func TestClaimsWorkOffTheExpiredInSteps(t *testing.T) {
	t.Parallel()
	for name, key := range map[string]string{"keyless": "", "keyed": "k"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBounded(t, storage.ConfigEdit{})
			const n = 10_000
			b.fill(n, storage.Record{Key: key, ExpireIn: 50 * time.Millisecond})
			enqueue(t, b, b.queue, storage.Record{ID: "good", Key: key})
			redistest.Until(t, "all have expired", func() bool {
				_, err := b.Get(t.Context(), time.Time{}, b.queue, fmt.Sprint(n-1))
				return errors.Is(err, storage.ErrNotFound)
			})
			most := 0
			var c storage.Claimed
			for range n {
				most = max(most, b.inner("claim", func() { c = b.take(storage.Claim{Limit: 1, Group: len(key) > 0}) }))
				if len(c.Records) > 0 {
					break
				}
				assert.Equal(t, c.Next, 0)
			}
			assert.Equal(t, c.Records[0].ID, "good")
			assert.True(t, most < 20_000, most)
		})
	}
}

// R12: a batch into a queue that has become too full drops in steps what is too much.
func TestDropsAreWorkedOffInSteps(t *testing.T) {
	t.Parallel()
	b := newBounded(t, storage.ConfigEdit{})
	const waiting, batch = 20_000, 150
	b.fill(waiting/2, storage.Record{ID: "old", Priority: 3})
	b.fill(waiting/2, storage.Record{ID: "oldkey", Key: "k", Priority: 3})
	b.configure(storage.ConfigEdit{MaxLen: new(10), Overflow: new(storage.DropOldest)})
	calls := commandStats(t, b.server)["evalsha"]
	var results []storage.EnqueueResult
	n := b.inner("enqueue", func() { results = b.fill(batch, storage.Record{ID: "new", Priority: 3}) })
	dropped := 0
	for i, r := range results {
		assert.Equal(t, r.Outcome, storage.Stored)
		assert.Equal(t, len(r.Dropped), storage.Sweep, i)
		dropped += len(r.Dropped)
	}
	assert.Equal(t, dropped, batch*storage.Sweep)
	assert.True(t, n < 15*dropped, n)
	assert.True(t, commandStats(t, b.server)["evalsha"]-calls >= 10, "in few scripts")
}

// R3: what is left of a turn that is over holds no claim up for ever.
func TestDamagedTurnsHoldNoClaimUp(t *testing.T) {
	t.Parallel()
	const keys, turns = 9, 12
	damages := map[string]func(t *testing.T, server *redistest.Server, key []string){
		"keys lost": func(t *testing.T, server *redistest.Server, key []string) { server.Do(t, "DEL", key[keys]) },
		"members lost": func(t *testing.T, server *redistest.Server, key []string) {
			server.Do(t, "DEL", key[10])
		},
		"turn of nobody": func(t *testing.T, server *redistest.Server, key []string) {
			server.Do(t, "EVAL", `return redis.call('ZADD', KEYS[1], 0, string.rep('\0', 7) .. 'nobody')`, "1", key[turns])
		},
		"a turn twice": func(t *testing.T, server *redistest.Server, key []string) {
			server.Do(t, "EVAL", `return redis.call('ZADD', KEYS[1], 0, string.rep('\0', 7) .. 'k0')`, "1", key[turns])
		},
		"a turn of a key that may not": func(t *testing.T, server *redistest.Server, key []string) {
			server.Do(t, "EVAL", `return redis.call('ZADD', KEYS[1], 0, string.rep('\0', 7) .. 'held')`, "1", key[turns])
		},
	}
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBounded(t, storage.ConfigEdit{KeyLimit: new(1)})
			b.fill(2, storage.Record{ID: "held", Key: "held", Priority: 9})
			assert.Equal(t, len(b.take(storage.Claim{Limit: 1}).Records), 1)
			for i := range 10 {
				b.fill(3, storage.Record{ID: fmt.Sprint("k", i, "-"), Key: fmt.Sprint("k", i)})
			}
			damage(t, b.server, redisstore.QueueKeys("", b.queue))
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			_, err := b.Claim(ctx, time.Time{}, storage.Claim{Queue: b.queue, Limit: 100, Lease: time.Hour})
			assert.NoError(t, err)
			storagetest.RepairAll(t, b, time.Time{}, b.queue, 100, false)
			assert.Equal(t, storagetest.RepairAll(t, b, time.Time{}, b.queue, 100, true), nil)
			storagetest.AddsUp(t, stats(t, b, b.queue))
		})
	}
}

// A successor may have a key where the record that runs has none, and whoever settles that need not
// have heard of keys.
func TestASuccessorWithAKeyMakesTheQueueWhole(t *testing.T) {
	t.Parallel()
	server, queue := redistest.Shared(t), storagetest.NewQueueName()
	plain, other := open(t, server.URL()), open(t, server.URL())
	enqueue(t, plain, queue, storage.Record{ID: "a"})
	c := claim(t, plain, queue, 1, time.Minute)
	enqueue(t, other, queue, storage.Record{ID: "a", Key: "k", OnLive: storage.Rerun})
	lost, err := plain.Settle(t.Context(), time.Time{}, []storage.Settlement{{Receipt: c.Records[0].Receipt(queue), Verdict: storage.Ack}})
	assert.NoError(t, err)
	assert.Equal(t, len(lost), 0)
	assert.Equal(t, claim(t, plain, queue, 1, time.Minute).Records[0].Key, "k")
}

// R14: a queue that does not know any more that it has keys breaks no call of a process that has yet
// to hear of them.
func TestAPlainScriptMeetsKeys(t *testing.T) {
	t.Parallel()
	server, queue := redistest.Shared(t), storagetest.NewQueueName()
	knows := open(t, server.URL())
	enqueue(t, knows, queue, storage.Record{ID: "plain"}, storage.Record{ID: "a", Key: "k", ExpireIn: time.Hour}, storage.Record{ID: "b", Key: "k"})
	c := claim(t, knows, queue, 2, time.Minute)
	assert.Equal(t, len(c.Records), 2)
	enqueue(t, knows, queue, storage.Record{ID: "a", Key: "l", OnLive: storage.Rerun})
	server.Do(t, "DEL", redisstore.QueueKeys("", queue)[0])
	fresh := open(t, server.URL())
	enqueue(t, fresh, queue, storage.Record{ID: "c"}, storage.Record{ID: "b", OnLive: storage.Replace})
	for i, r := range c.Records {
		_, err := fresh.Settle(t.Context(), time.Time{}, []storage.Settlement{
			{Receipt: r.Receipt(queue), Verdict: []storage.Verdict{storage.Retry, storage.Ack}[i]},
		})
		assert.NoError(t, err)
	}
	claim(t, fresh, queue, 10, time.Minute)
	storagetest.RepairAll(t, fresh, time.Time{}, queue, 100, false)
	assert.Equal(t, storagetest.RepairAll(t, fresh, time.Time{}, queue, 100, true), nil)
	claim(t, fresh, queue, 10, time.Minute)
	st := stats(t, fresh, queue)
	storagetest.AddsUp(t, st)
	assert.Equal(t, []int64{st.Leased, st.Ready}, []int64{4, 0})
}

// R3: keys whose limit was raised are claimable at once, however many there are.
func TestARaisedLimitReachesTheLastKey(t *testing.T) {
	t.Parallel()
	b := newBounded(t, storage.ConfigEdit{KeyLimit: new(1)})
	var recs []storage.Record
	for i := range 500 {
		recs = append(recs, storage.Record{ID: fmt.Sprintf("r%03d", i), Key: fmt.Sprintf("k%03d", i)})
	}
	enqueue(t, b, b.queue, recs...)
	assert.Equal(t, len(b.take(storage.Claim{Limit: 1000}).Records), 500)
	enqueue(t, b, b.queue, storage.Record{ID: "last", Key: "k499"})
	d := dedicate(t, b.server, 1, storage.Scope{Queue: b.queue})
	d.wait()
	assert.Equal(t, storagetest.RepairAll(t, b, time.Time{}, b.queue, 100, true), nil)
	b.configure(storage.ConfigEdit{KeyLimit: new(2)})
	d.within(0, time.Now())
}

// R14: while keys are gone over, repair reports nothing that is not damaged.
func TestRepairFindsNothingInAPass(t *testing.T) {
	t.Parallel()
	b := newBounded(t, storage.ConfigEdit{KeyLimit: new(1), KeyIdle: new(time.Hour)})
	var recs []storage.Record
	for i := range 1000 {
		recs = append(recs, storage.Record{ID: fmt.Sprintf("r%03d", i), Key: fmt.Sprintf("k%03d", i)})
	}
	for range 5 {
		for i := range recs {
			recs[i].ID += "x"
			recs[i].Key += "y"
		}
		enqueue(t, b, b.queue, recs...)
	}
	b.take(storage.Claim{Limit: 1000})
	b.configure(storage.ConfigEdit{KeyLimit: new(3), KeyIdle: new(time.Duration(0)), MinBatch: new(2), Linger: new(time.Hour)})
	assert.Equal(t, storagetest.RepairAll(t, b, time.Time{}, b.queue, 1000, true), nil)
	b.configure(storage.ConfigEdit{KeyLimit: new(1), KeyIdle: new(time.Hour), MinBatch: new(1), Linger: new(time.Duration(0))})
	assert.Equal(t, storagetest.RepairAll(t, b, time.Time{}, b.queue, 1000, false), nil)
}

// R11: of a run that is settled together, what was acknowledged before another record of it waits
// again is not taken along.
func TestARunIsSettledInOrder(t *testing.T) {
	t.Parallel()
	b := newBounded(t, storage.ConfigEdit{Ordered: new(true)})
	b.fill(4, storage.Record{Key: "k"})
	c := b.take(storage.Claim{Limit: 4, Group: true})
	ss := make([]storage.Settlement, 4)
	for i, which := range []int{0, 2, 1, 3} {
		ss[i] = storage.Settlement{Receipt: c.Records[which].Receipt(b.queue), Verdict: []storage.Verdict{storage.Ack, storage.Ack, storage.Retry, storage.Ack}[i]}
	}
	lost, err := b.Settle(t.Context(), time.Time{}, ss)
	assert.NoError(t, err)
	assert.Equal(t, lost, []storage.Receipt{ss[3].Receipt}, "taken along")
	st := stats(t, b, b.queue)
	assert.Equal(t, []int64{st.Ready, st.Leased, st.Total.Acked}, []int64{2, 0, 2})
	assert.Equal(t, storagetest.RepairAll(t, b, time.Time{}, b.queue, 100, true), nil)
}
