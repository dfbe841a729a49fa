// SPDX-License-Identifier: Apache-2.0

package redisstore_test

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/internal/redistest"
	"github.com/bidemq/bide/redisstore"
	"github.com/bidemq/bide/storage"
	"github.com/bidemq/bide/storage/storagetest"
)

// granted is a queue whose records are leased by grants.
type granted struct {
	*testing.T
	*redisstore.Store
	server *redistest.Server
	queue  string
	keys   []string
	now    time.Time
}

func newGranted(t *testing.T, n int) *granted {
	t.Helper()
	server, queue := redistest.Shared(t), storagetest.NewQueueName()
	g := &granted{t, open(t, server.URL()), server, queue, redisstore.QueueKeys("", queue), time.UnixMilli(1_700_000_000_000).UTC()}
	for from := 0; from < n; from += storage.MaxBatch {
		recs := make([]storage.Record, min(n-from, storage.MaxBatch))
		for i := range recs {
			recs[i].ID = "r" + strings.Repeat("x", i%3) + fmt.Sprint(from+i) // not all of one length
		}
		_, err := g.Enqueue(t.Context(), g.now, queue, recs)
		assert.NoError(t, err)
	}
	return g
}

// take claims records for an hour, which begins now.
func (g *granted) take(n int) []storage.Record {
	g.Helper()
	c, err := g.Claim(g.Context(), g.now, storage.Claim{Queue: g.queue, Limit: n, Lease: time.Hour, By: "me"})
	assert.NoError(g, err)
	assert.Equal(g, len(c.Records), n)
	return c.Records
}

// ack returns how many leases were lost.
func (g *granted) ack(recs ...storage.Record) int {
	g.Helper()
	var ss []storage.Settlement
	for _, r := range recs {
		ss = append(ss, storage.Settlement{Receipt: r.Receipt(g.queue), Verdict: storage.Ack})
	}
	lost, err := g.Settle(g.Context(), g.now, ss)
	assert.NoError(g, err)
	return len(lost)
}

func (g *granted) extend(recs ...storage.Record) int {
	g.Helper()
	var rs []storage.Receipt
	for _, r := range recs {
		rs = append(rs, r.Receipt(g.queue))
	}
	lost, err := g.Extend(g.Context(), g.now, time.Hour, rs)
	assert.NoError(g, err)
	return len(lost)
}

// inGrants is how many records are leased by grants, as meta has it.
func (g *granted) inGrants() int {
	g.Helper()
	n := 0
	for text := g.server.Do(g, "HGET", g.keys[0], "g"); len(text) >= 19; text = text[19:] {
		for _, b := range []byte(text[13:19]) {
			n += bits.OnesCount8(b)
		}
	}
	return n
}

// states are ready, leased and acknowledged records. Nothing may be left to repair.
func (g *granted) states() []int64 {
	g.Helper()
	assert.Equal(g, storagetest.RepairAll(g, g, g.now, g.queue, 100, true), nil)
	st, err := g.Stats(g.Context(), g.now, g.queue)
	assert.NoError(g, err)
	storagetest.AddsUp(g, st)
	return []int64{st.Ready, st.Leased, st.Total.Acked}
}

// R5: a record that is extended leaves its grant, the others keep their end.
func TestExtendOneOfAGrant(t *testing.T) {
	t.Parallel()
	g := newGranted(t, 100)
	recs := g.take(100)
	assert.Equal(t, g.inGrants(), 100)
	g.now = g.now.Add(time.Minute)
	assert.Equal(t, g.extend(recs[60]), 0)
	assert.Equal(t, g.inGrants(), 99)
	g.now = g.now.Add(time.Hour - time.Minute) // the end of the others
	assert.Equal(t, g.ack(recs[60], recs[61]), 1)
	assert.Equal(t, g.states(), []int64{99, 0, 1})
}

// R5: a consumer that keeps all its leases keeps them all, and settles them.
func TestExtendAllOfAGrant(t *testing.T) {
	t.Parallel()
	g := newGranted(t, 100)
	recs := g.take(100)
	for range 3 {
		g.now = g.now.Add(40 * time.Minute)
		assert.Equal(t, g.extend(recs...), 0)
		assert.Equal(t, g.inGrants(), 0)
	}
	assert.Equal(t, g.ack(recs...), 0)
	assert.Equal(t, g.states(), []int64{0, 0, 100})
}

// R6 R7: when a lease ends that others have left by acks, those that are still in it are ready, with an
// attempt spent.
func TestTheLeaseOfHalfAGrantEnds(t *testing.T) {
	t.Parallel()
	g := newGranted(t, 60)
	recs := g.take(60)
	var half []storage.Record
	for i := 0; i < 60; i += 2 {
		half = append(half, recs[i])
	}
	assert.Equal(t, g.ack(half...), 0)
	assert.Equal(t, g.ack(half...), 30, "twice")
	assert.Equal(t, g.inGrants(), 30)
	g.now = g.now.Add(time.Hour)
	assert.Equal(t, g.ack(recs[1]), 1)
	again, err := g.Claim(t.Context(), g.now, storage.Claim{Queue: g.queue, Limit: 60, Lease: time.Hour})
	assert.NoError(t, err)
	assert.Equal(t, len(again.Records), 30)
	assert.Equal(t, []any{again.Records[0].ID, again.Records[0].Attempts, again.Records[0].Reason}, []any{recs[1].ID, 2, storage.ReasonLeaseEnded})
	assert.Equal(t, g.ack(recs[3]), 1)
	assert.Equal(t, g.ack(again.Records...), 0)
	assert.Equal(t, g.states(), []int64{0, 0, 60})
}

// R10: a record is canceled while it runs, and its holder hears of it.
func TestCancelRunningInAGrant(t *testing.T) {
	t.Parallel()
	g := newGranted(t, 60)
	recs := g.take(60)
	assert.ErrorIs(t, g.Cancel(t.Context(), g.now, g.queue, recs[7].ID, false), storage.ErrConflict)
	assert.NoError(t, g.Cancel(t.Context(), g.now, g.queue, recs[7].ID, true))
	assert.Equal(t, g.ack(recs...), 1)
	assert.Equal(t, g.states(), []int64{0, 0, 59})
}

// What is leased by grants and alone is listed together, by end and then by arrival.
func TestListLeasedAcrossGrants(t *testing.T) {
	t.Parallel()
	g := newGranted(t, 130)
	recs := g.take(100)
	g.now = g.now.Add(time.Minute)
	assert.Equal(t, g.extend(recs[10]), 0)
	recs = append(recs, g.take(30)...)
	want := append(append(append([]storage.Record{}, recs[:10]...), recs[11:100]...), recs[10])
	want = append(want, recs[100:]...)
	var got []string
	f := storage.Filter{State: storage.Leased, Limit: 17}
	for more := true; more; {
		page, err := g.List(t.Context(), g.now, g.queue, f)
		assert.NoError(t, err)
		for _, r := range page.Records {
			got = append(got, r.ID)
			assert.Equal(t, []any{r.State, r.Attempts, r.Deliveries, r.Lease.By}, []any{storage.Leased, 1, 1, "me"})
		}
		more, f.After = page.More, page.Last
	}
	for i := range want {
		assert.Equal(t, got[i], want[i].ID, i)
	}
	assert.Equal(t, len(got), 130)
}

// R14: grants do not need the other leases, and are found again without meta. Without what they are
// made of, their records are as if nothing had happened to them.
func TestRepairOfGrants(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		damage func(g *granted)
		left   []int64
		lost   int
	}{
		"leases lost":       {func(g *granted) { g.server.Do(g, "DEL", g.keys[3]) }, []int64{0, 55, 5}, 0},
		"meta lost":         {func(g *granted) { g.server.Do(g, "DEL", g.keys[0]) }, []int64{0, 55, 0}, 0},
		"list lost":         {func(g *granted) { g.server.Do(g, "HDEL", g.keys[0], "g") }, []int64{0, 55, 5}, 0},
		"all but records":   {func(g *granted) { g.server.Do(g, "DEL", g.keys[0], g.keys[2], g.keys[3]) }, []int64{0, 55, 0}, 0},
		"list damaged":      {func(g *granted) { g.server.Do(g, "HSET", g.keys[0], "g", "junk") }, []int64{0, 55, 5}, 0},
		"list foreign":      {func(g *granted) { g.server.Do(g, "HSET", g.keys[0], "g", strings.Repeat("junk", 19)) }, []int64{0, 55, 5}, 0},
		"grants themselves": {func(g *granted) { g.eachGrant("HDEL', KEYS[1], f") }, []int64{54, 1, 5}, 54},
		"grants damaged":    {func(g *granted) { g.eachGrant("HSET', KEYS[1], f, 'junk'") }, []int64{54, 1, 5}, 54},
		"grants foreign":    {func(g *granted) { g.eachGrant("HSET', KEYS[1], f, string.rep('junk', 99)") }, []int64{54, 1, 5}, 54},
		"grants cut": {func(g *granted) {
			g.eachGrant("HSET', KEYS[1], f, string.sub(redis.call('HGET', KEYS[1], f), 1, -30)")
		}, []int64{54, 1, 5}, 54},
		"grants of nobody": {func(g *granted) {
			g.server.Do(g, "HSET", g.keys[1], "\x04junk", "junk", "\x04\x00\x00\x00\x00\x00\x00\x07", "junk")
		}, []int64{0, 55, 5}, 0},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			g := newGranted(t, 60)
			recs := g.take(60)
			assert.Equal(t, g.ack(recs[:5]...)+g.extend(recs[5]), 0)
			c.damage(g)
			storagetest.RepairAll(t, g, g.now, g.queue, 7, true)
			storagetest.RepairAll(t, g, g.now, g.queue, 7, false)
			assert.Equal(t, g.states(), c.left)
			assert.Equal(t, g.ack(recs[5:]...), c.lost)
		})
	}
}

// eachGrant runs a command with each grant f, whose name goes on from a quote.
func (g *granted) eachGrant(command string) {
	g.server.Do(g, "EVAL", `for _, f in ipairs(redis.call('HKEYS', KEYS[1])) do
		if string.byte(f) == 4 then redis.call('`+command+`) end
	end`, "1", g.keys[1])
}

// R5: a settlement meets a damaged grant: its lease is lost, and the queue goes on.
func TestSettleInADamagedGrant(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"junk", strings.Repeat("junk", 99), "longer than its head"} {
		g := newGranted(t, 60)
		recs := g.take(50)
		g.eachGrant("HSET', KEYS[1], f, '" + value + "'")
		assert.Equal(t, g.ack(recs[3], recs[49]), 2)
		assert.Equal(t, len(g.take(10)), 10)
		g.now = g.now.Add(2 * time.Hour)
		assert.Equal(t, len(g.take(10)), 10)
	}
}

// A queue that becomes whole while records are leased by grants knows them.
func TestAQueueBecomesWholeWhileGranted(t *testing.T) {
	t.Parallel()
	g := newGranted(t, 60)
	recs := g.take(60)
	_, err := g.Configure(t.Context(), g.queue, storage.ConfigEdit{KeyLimit: new(1), RetainCount: new(100)})
	assert.NoError(t, err)
	_, err = g.Enqueue(t.Context(), g.now, g.queue, []storage.Record{{ID: "keyed", Key: "k"}, {ID: recs[9].ID}, {ID: recs[8].ID, OnLive: storage.Rerun}})
	assert.NoError(t, err)
	other := open(t, g.server.URL())
	c, err := other.Claim(t.Context(), g.now, storage.Claim{Queue: g.queue, Limit: 100, Lease: 2 * time.Hour})
	assert.NoError(t, err)
	assert.Equal(t, len(c.Records), 1)
	assert.Equal(t, c.Next, time.Hour, "the end of the grants")
	assert.Equal(t, g.ack(recs[:30]...), 0)
	g.now = g.now.Add(time.Hour)
	assert.Equal(t, g.ack(recs[30]), 1)
	assert.Equal(t, g.states(), []int64{31, 1, 30}, "with the successor")
}

// A receipt that mixes the id of one record with the token of another is nobody's.
func TestAMixedReceiptIsLost(t *testing.T) {
	t.Parallel()
	g := newGranted(t, 10)
	recs := g.take(10)
	mixed := recs[3]
	mixed.Lease.Token = recs[4].Lease.Token
	assert.Equal(t, g.ack(mixed)+g.extend(mixed), 2)
	assert.Equal(t, g.ack(recs[0], mixed, recs[3]), 1)
	assert.Equal(t, g.ack(recs...), 2)
	assert.Equal(t, g.states(), []int64{0, 0, 10})
}

// More may be leased than grants have room for, in pieces of any size.
func TestMoreThanGrantsHold(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, 2, 7, 100, 1000} {
		t.Run(fmt.Sprint("claims of ", size), func(t *testing.T) {
			t.Parallel()
			n := min(300*size, 4000/size*size)
			g := newGranted(t, n)
			var recs []storage.Record
			most := 0
			for len(recs) < n {
				recs = append(recs, g.take(size)...)
				most = max(most, g.inGrants())
			}
			assert.True(t, (most > 0) == (size > 1) && most <= 1536, most)
			st, err := g.Stats(t.Context(), g.now, g.queue)
			assert.NoError(t, err)
			assert.Equal(t, st.Leased, int64(n))
			for len(recs) > 0 {
				last := min(len(recs), 333)
				assert.Equal(t, g.ack(recs[:last]...), 0)
				recs = recs[last:]
			}
			assert.Equal(t, g.states(), []int64{0, 0, int64(n)})
		})
	}
}

// Where grants have no room, a few that are left in many make it, and many stay: taking them out would hold the server up.
func TestStragglersMakeRoom(t *testing.T) {
	t.Parallel()
	const most, grants, size = 1536, 32, 48
	g := newGranted(t, most+2*size)
	var stragglers, others []storage.Record
	for range grants {
		recs := g.take(size)
		stragglers, others = append(stragglers, recs[0]), append(others, recs[1:]...)
	}
	assert.Equal(t, g.inGrants(), most)
	alone := g.take(size)
	assert.Equal(t, g.inGrants(), most) // these have leases of their own
	for half := range slices.Chunk(others, 800) {
		assert.Equal(t, g.ack(half...), 0)
	}
	assert.Equal(t, g.inGrants(), grants)
	last := g.take(size)
	assert.Equal(t, g.inGrants(), 0) // the slow claim takes them out and makes none itself
	assert.Equal(t, g.ack(alone...), 0)
	assert.Equal(t, g.ack(append(stragglers, last...)...), 0)
	assert.Equal(t, g.states(), []int64{0, 0, most + 2*size})
}

// The last ack leaves nothing behind, whatever order they come in.
func TestAcksGiveMemoryBack(t *testing.T) {
	t.Parallel()
	g := newGranted(t, 200)
	recs := g.take(200)
	for i := range 5 {
		var some []storage.Record
		for j := len(recs) - 1 - i; j >= 0; j -= 5 {
			some = append(some, recs[j])
		}
		assert.Equal(t, g.ack(some...), 0)
	}
	for i, key := range g.keys[1:] {
		assert.Equal(t, g.server.Do(t, "EXISTS", key), "0", i)
	}
	assert.Equal(t, g.server.Do(t, "HGET", g.keys[0], "g"), "")
	assert.Equal(t, g.states(), []int64{0, 0, 200})
}

// What is given back at once, or leaves a window, is so many commands however many there are.
func TestABatchIsSettledTogether(t *testing.T) {
	t.Parallel()
	b := newBounded(t, storage.ConfigEdit{})
	b.fill(500, storage.Record{ID: "a", ExpireIn: time.Hour, Priority: 3})
	b.fill(500, storage.Record{ID: "b"})
	recs := append(b.take(storage.Claim{Limit: 500}).Records, b.take(storage.Claim{Limit: 500}).Records...)
	assert.True(t, b.inner("given back", func() { b.settle(storage.Release, recs...) }) <= 20)
	st := stats(t, b, b.queue)
	assert.Equal(t, []int64{st.Ready, st.Leased, st.Total.Released}, []int64{1000, 0, 1000})
	again := b.take(storage.Claim{Limit: 1000}).Records
	assert.Equal(t, []any{len(again), again[0].Attempts, again[0].Deliveries}, []any{1000, 1, 2})
	b.settle(storage.Ack, again...)

	b.fill(500, storage.Record{ID: "c", DedupFor: time.Hour})
	recs = b.take(storage.Claim{Limit: 500}).Records
	assert.True(t, b.inner("acks with windows", func() { b.settle(storage.Ack, recs...) }) <= 20)
	results, err := b.Enqueue(t.Context(), time.Time{}, b.queue, []storage.Record{{ID: recs[499].ID}})
	assert.NoError(t, err)
	assert.Equal(t, results[0].Outcome, storage.Duplicate)
	assert.Equal(t, storagetest.RepairAll(t, b, time.Time{}, b.queue, 100, true), nil)
}
