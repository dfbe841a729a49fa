// SPDX-License-Identifier: Apache-2.0

package redisstore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/internal/redistest"
	"github.com/bidemq/bide/redisstore"
	"github.com/bidemq/bide/storage"
	"github.com/bidemq/bide/storage/storagetest"
)

// load is traffic of every kind on a queue, and what its callers were told.
type load struct {
	*testing.T
	server *redistest.Server
	store  *redisstore.Store
	queue  string
	config storage.ConfigEdit

	settled atomic.Int64
	mu      sync.Mutex
	sent    map[string]bool // ids that were stored
	ended   map[string]bool // ids that were acknowledged, or dropped for others
	err     error
}

// start starts producers and consumers, each kind until its context ends.
func (l *load) start(produce, consume context.Context) (producers, consumers *sync.WaitGroup) {
	producers, consumers = new(sync.WaitGroup), new(sync.WaitGroup)
	for p := range 2 {
		producers.Go(func() {
			for i := 0; produce.Err() == nil && l.note(l.produce(p, i)); i++ {
			}
		})
	}
	for range 3 { // a process each, as some may not have heard of keys
		store := open(l, l.server.URL())
		consumers.Go(func() {
			for consume.Err() == nil && l.note(l.consume(store)) {
			}
		})
	}
	return producers, consumers
}

// note keeps the first error and says whether there was none.
func (l *load) note(err error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = err
	}
	return l.err == nil
}

func (l *load) produce(p, i int) error {
	ordered := l.config.Ordered != nil
	recs := make([]storage.Record, 1+rand.N(8))
	for k := range recs {
		r := storage.Record{ID: fmt.Sprint(p, "-", i, "-", k), Body: []byte("body"), MaxAttempts: 3, Delay: time.Duration(rand.N(3)) * time.Millisecond}
		if rand.N(3) > 0 {
			r.Key = fmt.Sprint("key é", rand.N(20))
		}
		if !ordered {
			r.Priority = rand.N(3)
		}
		if rand.N(3) == 0 {
			r.ExpireIn, r.DedupFor = time.Hour, 20*time.Millisecond
		}
		if rand.N(5) == 0 && i > 0 {
			r.ID, r.OnLive = fmt.Sprint(p, "-", i-1, "-", 0), storage.Rerun
		}
		recs[k] = r
	}
	results, err := l.store.Enqueue(l.Context(), time.Time{}, l.queue, recs)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for k, r := range results {
		if r.Err != nil {
			return r.Err
		}
		if r.Outcome != storage.Duplicate {
			l.sent[recs[k].ID] = true
		}
		for _, id := range r.Dropped {
			l.ended[id] = true
		}
	}
	return nil
}

func (l *load) consume(store *redisstore.Store) error {
	c, err := store.Claim(l.Context(), time.Time{}, storage.Claim{
		Queue: l.queue, Limit: 1 + rand.N(20), Lease: 200 * time.Millisecond, By: "consumer", Group: rand.N(2) == 0,
	})
	if err != nil {
		return err
	}
	var ss []storage.Settlement
	for _, r := range c.Records {
		s := storage.Settlement{Receipt: r.Receipt(l.queue), Verdict: storage.Ack, Reason: "reason"}
		switch rand.N(30) {
		case 0:
			s.Verdict = storage.Bury
		case 1:
			s.Verdict, s.Delay = storage.Retry, 3*time.Millisecond
		case 2:
			s.Verdict = storage.Release
		case 3:
			continue // and its lease ends
		}
		ss = append(ss, s)
	}
	lost, err := store.Settle(l.Context(), time.Time{}, ss)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range ss {
		if s.Verdict == storage.Ack && !slices.Contains(lost, s.Receipt) {
			l.ended[s.Receipt.ID] = true
			l.settled.Add(1)
		}
	}
	return nil
}

// goOn waits until n more records are acknowledged.
func (l *load) goOn(n int64) {
	l.Helper()
	target := l.settled.Load() + n
	redistest.Until(l, "traffic goes on", func() bool { return l.settled.Load() >= target || !l.note(nil) })
}

// repair repairs under load until a whole pass finds nothing.
func (l *load) repair() {
	l.Helper()
	redistest.Until(l, "repair finds nothing any more", func() bool {
		return len(storagetest.RepairAll(l, l.store, time.Time{}, l.queue, 50, false)) == 0
	})
}

// judge says that every record that was stored has ended somehow.
func (l *load) judge() {
	l.Helper()
	dead := map[string]bool{}
	f := storage.Filter{State: storage.Dead, Limit: storage.MaxBatch}
	for {
		page, err := l.store.List(l.Context(), time.Time{}, l.queue, f)
		assert.NoError(l, err)
		for _, r := range page.Records {
			dead[r.ID] = true
		}
		if !page.More {
			break
		}
		f.After = page.Last
	}
	for id := range l.sent {
		assert.True(l, l.ended[id] || dead[id], "lost", id)
	}
	l.Logf("%d ids, %d acknowledged, %d dead", len(l.sent), l.settled.Load(), len(dead))
}

// R14: a healthy queue is healthy under load too; and whatever but the records is lost, or comes back
// from an old copy, is rebuilt while traffic goes on.
func TestRepairUnderLoad(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]storage.ConfigEdit{
		"limited": {KeyLimit: new(3), KeyIdle: new(time.Hour), RetainCount: new(50), TellDead: new(true)},
		"ordered": {Ordered: new(true), KeyIdle: new(time.Hour), RetainCount: new(50), TellDead: new(true), MaxDeliveries: new(20)},
		"bounded": {MaxLen: new(200), MaxPerKey: new(30), Overflow: new(storage.DropOldest), MinBatch: new(3), Linger: new(5 * time.Millisecond)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			l := &load{
				T: t, server: server, store: open(t, server.URL()), queue: storagetest.NewQueueName(), config: config,
				sent: map[string]bool{}, ended: map[string]bool{},
			}
			l.run()
		})
	}
}

func (l *load) run() {
	_, err := l.store.Configure(l.Context(), l.queue, l.config)
	assert.NoError(l, err)
	produce, stopProducers := context.WithCancel(l.Context())
	defer stopProducers()
	consume, stopConsumers := context.WithCancel(l.Context())
	defer stopConsumers()
	producers, consumers := l.start(produce, consume)
	for range 10 {
		l.goOn(50)
		assert.Equal(l, storagetest.RepairAll(l, l.store, time.Time{}, l.queue, 50, true), nil, "a healthy queue")
	}
	for _, key := range redisstore.QueueKeys("", l.queue) {
		if strings.HasSuffix(key, ":records") {
			continue
		}
		l.server.Do(l, "DEL", "saved")
		l.server.Do(l, "COPY", key, "saved")
		l.goOn(100)
		l.server.Do(l, "DEL", key)
		l.server.Do(l, "COPY", "saved", key)
		l.repair()
		l.goOn(50)
		if strings.HasSuffix(key, ":meta") {
			continue // the configuration is in no record
		}
		l.server.Do(l, "DEL", key)
		l.repair()
		l.goOn(50)
	}
	stopProducers()
	producers.Wait()
	redistest.Until(l, "everything is delivered", func() bool {
		st := stats(l, l.store, l.queue)
		return st.Delayed+st.Ready+st.Leased == 0 || !l.note(nil)
	})
	stopConsumers()
	consumers.Wait()
	assert.NoError(l, l.err)
	storagetest.AddsUp(l, stats(l, l.store, l.queue))
	assert.Equal(l, storagetest.RepairAll(l, l.store, time.Time{}, l.queue, 50, true), nil)
	l.judge()
}
