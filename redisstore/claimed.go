// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"sync"
	"time"

	"github.com/bidemq/bide/storage"
)

// rememberMost bounds the leases of a queue that a process remembers the shards of.
const rememberMost = 200_000

// claimed remembers which shards this process has leases from: a receipt does not say. One that it has
// forgotten, or that another process got, is looked for in all shards.
type claimed struct {
	mu     sync.Mutex
	leases map[lease]held
}

// lease is what a receipt proves, within its queue. An id is in one shard at a time, unless producers use
// it with different keys; then two tokens that are the same must come from the same microsecond.
type lease struct {
	id    string
	token int64
}

type held struct {
	shard int
	until time.Time // by the clock of this process; after it nobody has to be fast
}

func (c *claimed) add(shard int, recs []storage.Record, until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.leases == nil {
		c.leases = map[lease]held{}
	}
	if len(c.leases) > rememberMost {
		c.prune()
	}
	for i := range recs {
		c.leases[lease{recs[i].ID, recs[i].Lease.Token}] = held{shard, until}
	}
}

// prune forgets what has ended, and everything if that is too little.
func (c *claimed) prune() {
	now := time.Now()
	for l, h := range c.leases {
		if h.until.Before(now) {
			delete(c.leases, l)
		}
	}
	if len(c.leases) > rememberMost/2 {
		clear(c.leases)
	}
}

// of returns the shard of a receipt.
func (c *claimed) of(r storage.Receipt) (int, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h, ok := c.leases[lease{r.ID, r.Token}]
	return h.shard, ok
}

func (c *claimed) remove(rs []storage.Receipt) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range rs {
		delete(c.leases, lease{r.ID, r.Token})
	}
}

func (c *claimed) extend(rs []storage.Receipt, until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range rs {
		if h, ok := c.leases[lease{r.ID, r.Token}]; ok {
			h.until = until
			c.leases[lease{r.ID, r.Token}] = h
		}
	}
}
