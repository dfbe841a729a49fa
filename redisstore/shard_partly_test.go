// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/internal/redistest"
	"github.com/bidemq/bide/storage"
)

// A shard that is left alone for a moment does not make the others be asked again and again.
func TestNoHurryWhileAShardIsDown(t *testing.T) {
	t.Parallel()
	s := openQuiet(t, redistest.Shared(t).URL())
	queue := spreadQueue(t, s, 3, storage.ConfigEdit{})
	s.spreadOf(queue).leave(1, time.Minute)
	for range 3 {
		c, err := s.Claim(t.Context(), time.Time{}, storage.Claim{Queue: queue, Limit: 10, Lease: time.Minute})
		assert.NoError(t, err)
		assert.Equal(t, c.Next, longPause)
	}
}

// R5 R7: what the other shards have given is handed over while there is time to handle it, though one shard does
// not answer.
func TestAShardDoesNotAnswer(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, redistest.Config("cluster-require-full-coverage", "no", "cluster-node-timeout", "60000"))
	s := openQuiet(t, c.URL())
	queue := spreadQueue(t, s, 12, storage.ConfigEdit{})
	for i := range 240 {
		put(t, s, queue, storage.Record{ID: strconv.Itoa(i), MaxAttempts: 1})
	}
	c.Nodes[2].Stop(t)
	defer c.Nodes[2].Continue(t)
	const lease = 4 * time.Second
	began, got := time.Now(), 0
	for range 3 {
		sent := time.Now()
		claimed, err := s.Claim(t.Context(), time.Time{}, storage.Claim{Queue: queue, Limit: 240, Lease: lease})
		assert.NoError(t, err)
		assert.True(t, time.Since(sent) < lease*3/4, time.Since(sent))
		got += len(claimed.Records)
	}
	assert.True(t, got > 100, got)
	assert.True(t, time.Since(began) < lease, "it is not waited for again at once")
}

// Nothing is said of a message that may be in a shard which does not answer; what is found elsewhere is found.
func TestNotFoundNeedsEveryShard(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	s := openQuiet(t, server.URL())
	queue := spreadQueue(t, s, 3, storage.ConfigEdit{})
	for i := range 60 {
		put(t, s, queue, storage.Record{ID: strconv.Itoa(i), Key: "k" + strconv.Itoa(i)})
	}
	broken := s.keysOf(shardName(queue, 2))[0]
	server.Do(t, "DEL", broken)
	server.Do(t, "SET", broken, "x")
	for i := range 60 {
		id := strconv.Itoa(i)
		err := s.Cancel(t.Context(), time.Time{}, queue, id, false)
		_, found := s.Get(t.Context(), time.Time{}, queue, id)
		switch {
		case home("k"+id, 3) == 2 || home(id, 3) == 2: // there, or asked first there
			assert.True(t, err != nil && !errors.Is(err, storage.ErrNotFound), err)
			assert.True(t, found != nil && !errors.Is(found, storage.ErrNotFound), found)
		default:
			assert.NoError(t, err)
		}
	}
}

// Dead messages stay where they are while messages move, whatever the process knows of that.
func TestAnOldLayoutRedrivesNothing(t *testing.T) {
	t.Parallel()
	url := redistest.Shared(t).URL()
	old, fresh := openQuiet(t, url), openQuiet(t, url)
	for _, from := range []int{0, 5} {
		queue := spreadQueue(t, old, from, storage.ConfigEdit{})
		put(t, old, queue, storage.Record{ID: "dead", Key: "k", MaxAttempts: 1})
		for _, r := range take(t, old, queue, 10) {
			_, err := old.Settle(t.Context(), time.Time{}, []storage.Settlement{{Receipt: r.Receipt(queue), Verdict: storage.Retry}})
			assert.NoError(t, err)
		}
		_, err := fresh.Configure(t.Context(), queue, storage.ConfigEdit{Shards: new(2)})
		assert.NoError(t, err)
		for _, f := range []storage.Filter{{State: storage.Dead, Limit: 10}, {State: storage.Dead, Limit: 10, ID: "dead"}} {
			_, err = old.Redrive(t.Context(), time.Time{}, queue, f)
			assert.ErrorIs(t, err, storage.ErrConflict)
		}
	}
}

// R14: a finished record that two processes carry home at the same time, or one twice, is there once.
func TestCarriedTwice(t *testing.T) {
	t.Parallel()
	s := openQuiet(t, redistest.Shared(t).URL())
	queue := spreadQueue(t, s, 2, storage.ConfigEdit{RetainCount: new(10), TellDead: new(true)})
	put(t, s, queue, storage.Record{ID: "dead", Key: "k", MaxAttempts: 1}, storage.Record{ID: "done", Key: "k"})
	verdicts := map[string]storage.Verdict{"dead": storage.Retry, "done": storage.Ack}
	for left := 2; left > 0; {
		for _, r := range take(t, s, queue, 10) {
			_, err := s.Settle(t.Context(), time.Time{}, []storage.Settlement{{Receipt: r.Receipt(queue), Verdict: verdicts[r.ID], Reason: "why"}})
			assert.NoError(t, err)
			left--
		}
	}
	l, from := s.layoutOf(queue), home("k", 2)
	stored, err := s.client.Do(t.Context(), s.client.B().Hgetall().Key(s.keysOf(l.shards[from].name)[1]).Build()).AsStrMap()
	assert.NoError(t, err)
	assert.Equal(t, len(stored), 2)
	for range 2 { // as two processes do that have both read it
		for field, value := range stored {
			_, err := s.run(t.Context(), shardAdoptScript, l.shards[1-from], "", field[7:], value)
			assert.NoError(t, err)
		}
		page, err := s.List(t.Context(), time.Time{}, queue, storage.Filter{State: storage.Dead, Untold: true, Limit: 10})
		assert.NoError(t, err)
		for _, r := range page.Records {
			assert.NoError(t, s.Told(t.Context(), queue, []storage.DeadID{{ID: r.ID, Seq: r.Seq}}))
		}
	}
	st, err := s.Stats(t.Context(), time.Time{}, queue)
	assert.NoError(t, err)
	assert.Equal(t, []int64{st.Dead, st.Done}, []int64{2, 2}, "here and there")
	assert.Equal(t, repairAll(t, s, queue), 0)
}

// A queue that has lost its layout, when a call begins anew because of that, has one shard.
func TestALayoutThatIsGone(t *testing.T) {
	t.Parallel()
	s := openQuiet(t, redistest.Shared(t).URL())
	queue := spreadQueue(t, s, 0, storage.ConfigEdit{})
	put(t, s, queue, storage.Record{ID: "a"})
	c, err := s.claimSpread(t.Context(), time.Time{}, storage.Claim{Queue: queue, Limit: 10, Lease: time.Minute})
	assert.NoError(t, err)
	assert.Equal(t, len(c.Records), 1)
	rs := []storage.Receipt{c.Records[0].Receipt(queue)}
	lost, err := s.settleSpread(t.Context(), extendScript, queue, []string{"", "1000"}, rs, []int{0},
		func(i int) (string, string) { return rs[i].ID, decimal(rs[i].Token) })
	assert.NoError(t, err)
	assert.Equal(t, len(lost), 0)
}

// R14 R20: a shard is not left while it has a live record of a key that is not known any more.
func TestNoShardIsLeftWithARecord(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	s := openQuiet(t, server.URL())
	queue := spreadQueue(t, s, 8, storage.ConfigEdit{})
	key := "k"
	for home(key, 8) == 0 {
		key += "k"
	}
	put(t, s, queue, storage.Record{ID: "a", Key: key})
	server.Do(t, "DEL", s.keysOf(shardName(queue, home(key, 8)))[9]) // keys
	_, err := s.Configure(t.Context(), queue, storage.ConfigEdit{Shards: new(1)})
	assert.NoError(t, err)
	done, err := s.settleLayout(t.Context(), time.Time{}, queue)
	assert.NoError(t, err)
	assert.True(t, !done)
	assert.True(t, repairAll(t, s, queue) > 0)
	assert.Equal(t, len(take(t, s, queue, 10)), 1)
}
