// SPDX-License-Identifier: Apache-2.0

package redisstore_test

import (
	"fmt"
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

// dedicated is a process that asks for some scopes only.
type dedicated struct {
	*testing.T
	*redisstore.Store
	server *redistest.Server
	scopes []storage.Scope
	woken  chan woke
}

// woke says when a wait has ended, and for which scopes.
type woke struct {
	at    time.Time
	ready []int
}

// dedicate starts a process that asks for scopes, and finds nothing in them for now. Redis knows that
// it waits when dedicate returns; all is how many entries there are then.
func dedicate(t *testing.T, server *redistest.Server, all int, scopes ...storage.Scope) *dedicated {
	t.Helper()
	d := &dedicated{T: t, Store: open(t, server.URL()), server: server, scopes: scopes, woken: make(chan woke, 1)}
	_, err := d.Wait(t.Context(), scopes, time.Millisecond) // from now on its claims enter it
	assert.NoError(t, err)
	redistest.Until(t, "the process waits", func() bool {
		for i := range scopes {
			d.claim(i, time.Minute)
		}
		return entered(t, server, scopes[0].Queue) == all
	})
	return d
}

func (d *dedicated) claim(scope int, lease time.Duration) []storage.Record {
	d.Helper()
	s := d.scopes[scope]
	c, err := d.Claim(d.Context(), time.Time{}, storage.Claim{Queue: s.Queue, Keys: s.Keys, Except: s.Except, Limit: 10, Lease: lease, By: "dedicated"})
	assert.NoError(d, err)
	return c.Records
}

// wait waits and claims in the background until a scope has something.
func (d *dedicated) wait() {
	go func() {
		for {
			ready, err := d.Wait(d.Context(), d.scopes, storage.Forever)
			at := time.Now()
			if err != nil {
				return
			}
			var full []int
			for _, i := range ready {
				s := d.scopes[i]
				c, err := d.Claim(d.Context(), time.Time{}, storage.Claim{Queue: s.Queue, Keys: s.Keys, Except: s.Except, Limit: 10, Lease: time.Minute, By: "dedicated"})
				if err == nil && len(c.Records) > 0 {
					full = append(full, i)
				}
			}
			if len(full) > 0 {
				d.woken <- woke{at, full}
				return
			}
		}
	}()
}

// within says that a scope was ready soon after an instant. The bound is wider than that of R8: other
// tests run at the same time.
func (d *dedicated) within(scope int, since time.Time) {
	d.Helper()
	select {
	case w := <-d.woken:
		assert.True(d, slices.Contains(w.ready, scope), w.ready)
		d.Logf("ready after %s", w.at.Sub(since))
		assert.True(d, w.at.Sub(since) < 500*time.Millisecond, w.at.Sub(since))
	case <-time.After(10 * time.Second):
		d.Fatal("sleeps through work")
	}
}

// R8: who asks for a part is told of what is enqueued, and comes by himself to what was delayed.
func TestWhoAsksForAPartIsTold(t *testing.T) {
	t.Parallel()
	for _, delay := range []time.Duration{0, 300 * time.Millisecond} {
		t.Run(delay.String(), func(t *testing.T) {
			t.Parallel()
			server, queue := redistest.Shared(t), storagetest.NewQueueName()
			d := dedicate(t, server, 1, storage.Scope{Queue: queue, Keys: []string{"k"}})
			d.wait()
			due := enqueue(t, open(t, server.URL()), queue, storage.Record{ID: "a", Key: "k", Delay: delay})[0].Due
			d.within(0, due)
		})
	}
}

// R8: a process may ask for more parts than a script would tell one by one.
func TestManyPartsAreTold(t *testing.T) {
	t.Parallel()
	server, queue := redistest.Shared(t), storagetest.NewQueueName()
	const parts = 300
	var scopes []storage.Scope
	for i := range parts {
		scopes = append(scopes, storage.Scope{Queue: queue, Keys: []string{fmt.Sprint("k", i)}})
	}
	d := dedicate(t, server, parts, scopes...)
	d.wait()
	before := stats(t, d, queue).Total.Wakeups
	last := parts - 1
	r := enqueue(t, open(t, server.URL()), queue, storage.Record{ID: "a", Key: scopes[last].Keys[0]})[0]
	d.within(last, r.Now)
	assert.Equal(t, stats(t, d, queue).Total.Wakeups-before, 1, "told once")
}

// R6 R8: who dies with a message in hand is followed at the end of its lease by those who ask for a
// part, and is followed by all if he asked for a part himself.
func TestTheEndOfALeaseWakesParts(t *testing.T) {
	t.Parallel()
	part := func(queue string) storage.Scope { return storage.Scope{Queue: queue, Keys: []string{"k"}} }
	all := func(queue string) storage.Scope { return storage.Scope{Queue: queue} }
	for name, who := range map[string]struct{ dies, waits func(string) storage.Scope }{
		"all, part": {all, part}, "part, part": {part, part}, "part, all": {part, all},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, queue := redistest.Shared(t), storagetest.NewQueueName()
			d := dedicate(t, server, 1, who.waits(queue))
			victim, scope := open(t, server.URL()), who.dies(queue)
			enqueue(t, victim, queue, storage.Record{ID: "a", Key: "k"})
			_, err := d.Wait(t.Context(), d.scopes, storage.Forever)
			assert.NoError(t, err)
			c, err := victim.Claim(t.Context(), time.Time{}, storage.Claim{Queue: queue, Keys: scope.Keys, Limit: 1, Lease: 300 * time.Millisecond})
			assert.NoError(t, err)
			assert.Equal(t, len(c.Records), 1)
			assert.Equal(t, len(d.claim(0, time.Minute)), 0)
			d.wait()
			d.within(0, c.Records[0].Lease.Until)
		})
	}
}

// R8: an entry of a process that has died is no notice that others miss, and goes.
func TestThePartsOfTheDeadGo(t *testing.T) {
	t.Parallel()
	server, queue := redistest.Shared(t), storagetest.NewQueueName()
	d := dedicate(t, server, 1, storage.Scope{Queue: queue, Keys: []string{"k"}})
	d.wait()
	key := redisstore.QueueKeys("", queue)[8]
	for i := range 5 {
		server.Do(t, "ZADD", key, "6e15", fmt.Sprintf("*bide:default:dead%d %s 1", i, queue))
	}
	r := enqueue(t, open(t, server.URL()), queue, storage.Record{ID: "a", Key: "k"})[0]
	d.within(0, r.Now)
	assert.True(t, !strings.Contains(server.Do(t, "ZRANGE", key, "0", "-1"), "dead"))
}
