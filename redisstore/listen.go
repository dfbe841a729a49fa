// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

// pingEvery is how often the connection for notices is proved alive. With pingTimeout it stays below
// the 15 s of R8; it is less than silence, so that the client library has nothing to prove.
const pingEvery = 6 * time.Second

// nodesEvery is how often the list of the servers of a Cluster is looked at, which is known here.
const nodesEvery = 2 * time.Second

// listen keeps one subscribed connection for all the queues of the process, in a Cluster one to
// each server. Cluster-wide PUBLISH reaches a subscriber anywhere, but only the subscribers at the
// server of the queue are counted in its reply, and the scripts pass on to the next process when
// nobody is. (SPUBLISH would do with one connection, but Redis has it from version 7 on only.)
func (s *Store) listen() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listening || s.life.Err() != nil {
		return
	}
	s.listening = true
	h := &hearing{watches: s.watches, up: map[string]bool{}, lost: map[string]bool{}}
	if !s.cluster {
		h.want([]string{""})
		s.work.Go(func() { s.listenTo(s.life, h, "", s.client) })
		return
	}
	s.work.Go(func() {
		listeners := map[string]context.CancelFunc{}
		tick := time.NewTicker(nodesEvery)
		defer tick.Stop()
		for {
			nodes := s.client.Nodes()
			var addresses []string
			for address, node := range nodes {
				addresses = append(addresses, address)
				if listeners[address] == nil {
					ctx, cancel := context.WithCancel(s.life)
					listeners[address] = cancel
					s.work.Go(func() { s.listenTo(ctx, h, address, node) })
				}
			}
			for address, cancel := range listeners {
				if _, ok := nodes[address]; !ok {
					cancel()
					delete(listeners, address)
				}
			}
			h.want(addresses)
			select {
			case <-tick.C:
			case <-s.life.Done():
				for _, cancel := range listeners {
					cancel()
				}
				return
			}
		}
	})
}

// listenTo subscribes at one server until the context ends, again whenever the connection is lost.
func (s *Store) listenTo(ctx context.Context, h *hearing, address string, node rueidis.Client) {
	told := false // in the log, of a loss that lasts
	for pause := firstPause; ctx.Err() == nil; pause = min(2*pause, longPause) {
		var subscribed atomic.Bool
		heard := rueidis.WithOnSubscriptionHook(ctx, func(sub rueidis.PubSubSubscription) {
			if sub.Kind == "subscribe" {
				subscribed.Store(true)
				h.set(address, true)
			}
		})
		c, release := node.Dedicate()
		proving, proved := context.WithCancel(ctx)
		s.work.Go(func() { prove(proving, c) })
		err := c.Receive(heard, c.B().Subscribe().Channel(s.watches.channel).Build(), func(m rueidis.PubSubMessage) {
			s.heard(m.Message)
		})
		proved()
		h.set(address, false)
		if subscribed.Load() {
			pause, told = firstPause, false
		}
		c.Close()
		release()
		if ctx.Err() != nil {
			return
		}
		if !told {
			s.options.Logger.WarnContext(ctx, "lost the connection for notices", "address", s.address, "error", err)
			told = true
		}
		t := time.NewTimer(pause/2 + rand.N(pause))
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
		}
	}
}

// prove pings a connection until the context ends, and closes it when an answer is missing.
func prove(ctx context.Context, c rueidis.DedicatedClient) {
	tick := time.NewTicker(pingEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		ping, cancel := context.WithTimeout(ctx, pingTimeout)
		err := c.Do(ping, c.B().Ping().Build()).Error()
		cancel()
		if err != nil && ctx.Err() == nil {
			c.Close()
			return
		}
	}
}

// hearing knows which servers are listened to, and which should be.
type hearing struct {
	watches *watches

	mu     sync.Mutex
	wanted []string
	up     map[string]bool
	lost   map[string]bool // were up and are to be again: notices may have been lost since
}

func (h *hearing) want(addresses []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wanted = addresses
	h.tell(false)
}

func (h *hearing) set(address string, up bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	missed := up && h.lost[address]
	switch {
	case up:
		delete(h.lost, address)
	case h.up[address]:
		h.lost[address] = true
	}
	h.up[address] = up
	h.tell(missed)
}

func (h *hearing) tell(missed bool) {
	up := 0
	for _, a := range h.wanted {
		if h.up[a] {
			up++
		}
	}
	h.watches.hears(up > 0, up > 0 && up == len(h.wanted), missed)
}
