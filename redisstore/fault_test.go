// SPDX-License-Identifier: Apache-2.0

package redisstore_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/internal/redistest"
	"github.com/bidemq/bide/storage"
	"github.com/bidemq/bide/storage/storagetest"
)

// traffic enqueues and settles until its context ends, while something is done to the server, and
// fails on an error that should have been survived. What a call may not know is claimed again.
func traffic(ctx context.Context, t *testing.T, e storage.Engine, queue string, survives func(error) bool) (sent, settled int) {
	t.Helper()
	for i := 0; ctx.Err() == nil; i++ {
		_, err := e.Enqueue(t.Context(), time.Time{}, queue, []storage.Record{{ID: fmt.Sprint(i)}})
		assert.NoError(t, err)
		sent++
		c, err := e.Claim(t.Context(), time.Time{}, storage.Claim{Queue: queue, Limit: 10, Lease: time.Second})
		if err != nil {
			assert.True(t, survives(err), err)
			continue
		}
		var ss []storage.Settlement
		for _, r := range c.Records {
			ss = append(ss, storage.Settlement{Receipt: r.Receipt(queue), Verdict: storage.Ack})
		}
		_, err = e.Settle(t.Context(), time.Time{}, ss)
		assert.NoError(t, err)
		settled += len(ss)
	}
	return sent, settled
}

// disturb does something to the server over and over while traffic runs.
func disturb(t *testing.T, e storage.Engine, queue string, length, every time.Duration, survives func(error) bool, do func()) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), length)
	defer stop()
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				do()
			}
		}
	})
	sent, settled := traffic(ctx, t, e, queue, survives)
	wg.Wait()
	redistest.Until(t, "the rest is settled", func() bool {
		c := claim(t, e, queue, 100, time.Second)
		for _, r := range c.Records {
			_, err := e.Settle(t.Context(), time.Time{}, []storage.Settlement{{Receipt: r.Receipt(queue), Verdict: storage.Ack}})
			assert.NoError(t, err)
		}
		st := stats(t, e, queue)
		return st.Ready+st.Leased+st.Delayed+st.Dead == 0
	})
	t.Logf("%d sent, %d settled under way", sent, settled)
	assert.True(t, sent > 10)
}

func never(error) bool { return false }

func unavailable(err error) bool {
	return strings.Contains(err.Error(), storage.ErrUnavailable.Error())
}

func TestSurvivesScriptFlush(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	e := open(t, server.URL())
	disturb(t, e, storagetest.NewQueueName(), time.Second, 10*time.Millisecond, never, func() { server.Do(t, "SCRIPT", "FLUSH") })
}

func TestSurvivesCutConnections(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	e := open(t, server.URL())
	disturb(t, e, storagetest.NewQueueName(), time.Second, 20*time.Millisecond, unavailable, func() {
		server.Do(t, "CLIENT", "KILL", "TYPE", "normal")
	})
}

func TestSurvivesASlowServer(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	e := open(t, server.URL())
	disturb(t, e, storagetest.NewQueueName(), 2*time.Second, 500*time.Millisecond, never, func() {
		server.Do(t, "DEBUG", "SLEEP", "0.3")
	})
}

func TestSurvivesAReadOnlyServer(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	e := open(t, server.URL())
	disturb(t, e, storagetest.NewQueueName(), 2*time.Second, 200*time.Millisecond, never, func() {
		server.Do(t, "REPLICAOF", "127.0.0.1", "1")
		for range 20 { // while calls are refused
			server.Do(t, "PING")
		}
		server.Do(t, "REPLICAOF", "NO", "ONE")
	})
}

// R8: the waits of a process end when its connection was cut, so that it claims.
func TestWaitEndsAfterACut(t *testing.T) {
	t.Parallel()
	server, queue := redistest.Start(t), storagetest.NewQueueName()
	s := sleep(t, server, queue, 1)
	server.Do(t, "CLIENT", "KILL", "TYPE", "pubsub")
	assert.Equal(t, <-s.woken, []int{0})
	claim(t, s.store, queue, 1, time.Minute)
	s.wait(t, queue)
	redistest.Until(t, "the process waits", func() bool { return entered(t, server, queue) == 1 })
	enqueue(t, s.store, queue, storage.Record{ID: "a"})
	assert.Equal(t, <-s.woken, []int{0})
}

// A server that cuts idle connections after a second costs no claim and no notice.
func TestSurvivesIdleTimeout(t *testing.T) {
	t.Parallel()
	server, queue := redistest.Start(t, redistest.Config("timeout", "1")), storagetest.NewQueueName()
	s := sleep(t, server, queue, 1)
	other := open(t, server.URL())
	rounds := 3
	if testing.Short() {
		rounds = 1
	}
	for i := range rounds {
		idle := time.NewTimer(2500 * time.Millisecond)
		<-idle.C
		enqueue(t, other, queue, storage.Record{ID: fmt.Sprint(i)})
		assert.Equal(t, <-s.woken, []int{0})
		assert.Equal(t, len(claim(t, s.store, queue, 1, time.Minute).Records), 1)
		s.wait(t, queue)
	}
	assert.Equal(t, stats(t, other, queue).Total.Wakeups >= int64(rounds), true)
}

// R9: with appendfsync always, what was answered survives the death of the server.
func TestAnsweredIsKeptOverAKill(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.AppendOnly("always"))
	e := open(t, server.URL())
	queue := storagetest.NewQueueName()
	kills := 5
	if testing.Short() {
		kills = 2
	}
	var mu sync.Mutex
	kept, asked, acked := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for round := range kills {
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for producer := range 4 {
			wg.Go(func() {
				for i := 0; ctx.Err() == nil; i++ {
					id := fmt.Sprintf("%d-%d-%d", round, producer, i)
					results, err := e.Enqueue(ctx, time.Time{}, queue, []storage.Record{{ID: id, Body: []byte(id)}})
					if err == nil && results[0].Err == nil {
						mu.Lock()
						kept[id] = true
						mu.Unlock()
					}
				}
			})
		}
		wg.Go(func() {
			for ctx.Err() == nil {
				c, err := e.Claim(ctx, time.Time{}, storage.Claim{Queue: queue, Limit: 2, Lease: time.Hour})
				if err != nil {
					continue
				}
				for _, r := range c.Records {
					mu.Lock()
					asked[r.ID] = true
					mu.Unlock()
					lost, err := e.Settle(ctx, time.Time{}, []storage.Settlement{{Receipt: r.Receipt(queue), Verdict: storage.Ack}})
					if err == nil && len(lost) == 0 {
						mu.Lock()
						acked[r.ID] = true
						mu.Unlock()
					}
				}
			}
		})
		mu.Lock()
		before := len(kept)
		mu.Unlock()
		redistest.Until(t, "traffic flows", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(kept) > before+100
		})
		server.Kill()
		stop()
		wg.Wait()
		server.Restart(t)
	}
	stored := map[string]bool{}
	for _, state := range []storage.State{storage.Ready, storage.Leased} {
		f := storage.Filter{State: state, Limit: storage.MaxBatch}
		for more := true; more; {
			page, err := e.List(t.Context(), time.Time{}, queue, f)
			assert.NoError(t, err)
			for _, r := range page.Records {
				assert.Equal(t, string(r.Body), r.ID)
				stored[r.ID] = true
			}
			more, f.After = page.More, page.Last
		}
	}
	lost, back := 0, 0
	for id := range kept {
		switch {
		case acked[id] && stored[id]:
			back++
		case !asked[id] && !stored[id]:
			lost++ // an ack that was asked for may have happened, whatever was heard of it
		}
	}
	t.Logf("%d answered, %d acked, %d stored", len(kept), len(acked), len(stored))
	assert.Equal(t, back, 0, "acked and there again")
	assert.Equal(t, lost, 0, "answered, never acked, and gone")
	assert.Equal(t, storagetest.RepairAll(t, e, time.Time{}, queue, storage.MaxBatch, true), nil)
}

// A full server refuses to publish, says why, and is drained.
func TestFullServerDrains(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Config("maxmemory", "4mb"))
	e, queue := open(t, server.URL()), storagetest.NewQueueName()
	body := make([]byte, 1000)
	n := 0
	for {
		results, err := e.Enqueue(t.Context(), time.Time{}, queue, []storage.Record{{ID: fmt.Sprint(n), Body: body}})
		assert.NoError(t, err)
		if results[0].Err != nil {
			assert.ErrorIs(t, results[0].Err, storage.ErrFull)
			assert.Equal(t, results[0].Outcome, storage.Refused)
			break
		}
		n++
	}
	assert.True(t, n > 100, n)
	results, err := e.Enqueue(t.Context(), time.Time{}, queue, []storage.Record{{ID: ""}, {ID: "more", Body: body}})
	assert.NoError(t, err)
	assert.ErrorIs(t, results[0].Err, storage.ErrInvalid)
	assert.ErrorIs(t, results[1].Err, storage.ErrFull)
	_, err = e.Edit(t.Context(), time.Time{}, queue, "0", storage.Edit{Body: &body})
	assert.ErrorIs(t, err, storage.ErrFull)

	assert.Equal(t, stats(t, e, queue).Ready, int64(n))
	_, err = e.Get(t.Context(), time.Time{}, queue, "0")
	assert.NoError(t, err)
	for n > 0 {
		c := claim(t, e, queue, 50, time.Minute)
		assert.True(t, len(c.Records) > 0)
		var ss []storage.Settlement
		for i, r := range c.Records {
			v := storage.Ack
			if i == 0 && n > 60 {
				v = storage.Retry
			}
			ss = append(ss, storage.Settlement{Receipt: r.Receipt(queue), Verdict: v})
		}
		lost, err := e.Settle(t.Context(), time.Time{}, ss)
		assert.NoError(t, err)
		assert.Equal(t, len(lost), 0)
		n = int(stats(t, e, queue).Ready)
	}
	assert.Equal(t, len(claim(t, e, queue, 50, time.Minute).Records), 0)
	enqueue(t, e, queue, storage.Record{ID: "after"})
}
