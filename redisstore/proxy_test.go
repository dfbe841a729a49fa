// SPDX-License-Identifier: Apache-2.0

package redisstore_test

import (
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/internal/redistest"
	"github.com/bidemq/bide/storage"
	"github.com/bidemq/bide/storage/storagetest"
)

// proxy stands between a process and a server. The connections that it has swallowed stay open and
// bring nothing any more, as those to a machine that has lost its power.
type proxy struct {
	path string

	mu        sync.Mutex
	swallowed *bool // of the connections that are made from here on
}

func startProxy(t *testing.T, to string) *proxy {
	t.Helper()
	p := &proxy{path: filepath.Join(filepath.Dir(to), "proxy.sock"), swallowed: new(bool)}
	l, err := net.Listen("unix", p.path)
	assert.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("unix", to)
			if err != nil {
				_ = in.Close()
				continue
			}
			p.mu.Lock()
			swallowed := p.swallowed
			p.mu.Unlock()
			go p.pump(in, out, swallowed)
			go p.pump(out, in, swallowed)
		}
	}()
	return p
}

func (p *proxy) pump(to, from net.Conn, swallowed *bool) {
	defer func() { _, _ = to.Close(), from.Close() }()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		p.mu.Lock()
		hole := *swallowed
		p.mu.Unlock()
		if hole {
			continue
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// swallow makes the connections of now dead and silent. Later ones work.
func (p *proxy) swallow() {
	p.mu.Lock()
	defer p.mu.Unlock()
	*p.swallowed = true
	p.swallowed = new(bool)
}

// R8: a connection that has died without a word is replaced, and its waits end, within 15 seconds.
func TestSurvivesASilentDeathOfConnections(t *testing.T) {
	t.Parallel()
	server, queue := redistest.Start(t), storagetest.NewQueueName()
	p := startProxy(t, server.Address())
	s := open(t, "redis+unix://"+p.path)
	woken := make(chan []int, 1)
	go func() {
		ready, err := s.Wait(t.Context(), []storage.Scope{{Queue: queue}}, storage.Forever)
		if err == nil {
			woken <- ready
		}
	}()
	redistest.Until(t, "the process waits", func() bool { return entered(t, server, queue) == 1 })
	p.swallow()
	began := time.Now()
	enqueue(t, open(t, server.URL()), queue, storage.Record{ID: "a"})
	assert.Equal(t, <-woken, []int{0})
	took := time.Since(began)
	t.Logf("noticed after %s", took)
	assert.True(t, took < 15*time.Second, took)
	redistest.Until(t, "the process claims", func() bool {
		c, err := s.Claim(t.Context(), time.Time{}, storage.Claim{Queue: queue, Limit: 1, Lease: time.Minute})
		return err == nil && len(c.Records) == 1
	})
}

// R8: a Wait that begins on a connection which has died without a word does not hang with it.
func TestWaitOnADeadConnectionEnds(t *testing.T) {
	t.Parallel()
	server, first, queue := redistest.Start(t), storagetest.NewQueueName(), storagetest.NewQueueName()
	p := startProxy(t, server.Address())
	s := open(t, "redis+unix://"+p.path)
	go func() { _, _ = s.Wait(t.Context(), []storage.Scope{{Queue: first}}, storage.Forever) }()
	redistest.Until(t, "the process waits", func() bool { return entered(t, server, first) == 1 })
	p.swallow()
	began := time.Now()
	ready, err := s.Wait(t.Context(), []storage.Scope{{Queue: queue}}, storage.Forever)
	assert.NoError(t, err)
	assert.Equal(t, ready, []int{0})
	took := time.Since(began)
	t.Logf("ended after %s", took)
	assert.True(t, took < 10*time.Second, took)
}
