// SPDX-License-Identifier: Apache-2.0

// Package proxy stands between clients and a server, and harms what passes as a network does: it
// delays, cuts in the middle of an answer, goes silent without a word, and holds everything back.
// At which byte is up to the caller, so that a seed can choose it.
package proxy

import (
	"net"
	"sync"
	"time"
)

// Direction of what passes.
type Direction uint8

// The directions.
const (
	Requests Direction = iota // from clients to the server
	Replies                   // from the server to clients
)

// Proxy forwards connections. Its methods may be called from many goroutines.
type Proxy struct {
	listener net.Listener
	network  string // of the server
	target   string
	closed   chan struct{}
	work     sync.WaitGroup

	mu     sync.Mutex
	links  map[*link]struct{}
	delay  [2]time.Duration
	thawed chan struct{} // closed unless everything is held back
	passed [2]int64      // bytes
}

// Start listens on an address, and forwards what connects to it to a server, which need not be there
// yet: while it is not, connections are closed at once.
func Start(network, address, targetNetwork, target string) (*Proxy, error) {
	l, err := net.Listen(network, address)
	if err != nil {
		return nil, err
	}
	thawed := make(chan struct{})
	close(thawed)
	p := &Proxy{
		listener: l, network: targetNetwork, target: target,
		closed: make(chan struct{}), links: map[*link]struct{}{}, thawed: thawed,
	}
	p.work.Go(p.accept)
	return p, nil
}

// Address is where clients connect.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// Close ends all connections. It is called once.
func (p *Proxy) Close() {
	close(p.closed)
	_ = p.listener.Close() // only tells that it is closed already
	p.each(func(l *link) { l.close() })
	p.work.Wait()
}

// Delay makes everything that passes in a direction late, until it is called again. Zero ends it.
func (p *Proxy) Delay(d Direction, by time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay[d] = by
}

// Cut closes each connection of this moment when so many more bytes have passed in a direction.
func (p *Proxy) Cut(d Direction, after int64) {
	p.each(func(l *link) { l.end(d, after, false) })
}

// Swallow makes each connection of this moment half-open when so many more bytes have passed in a
// direction: it stays, and what comes is gone, as with a machine that has lost its power.
func (p *Proxy) Swallow(d Direction, after int64) {
	p.each(func(l *link) { l.end(d, after, true) })
}

// Hold keeps everything back, also what connects, until Release: it is late then, and not lost, as
// after a partition of a network.
func (p *Proxy) Hold() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.thawed:
		p.thawed = make(chan struct{})
	default:
	}
}

// Release ends Hold.
func (p *Proxy) Release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.thawed:
	default:
		close(p.thawed)
	}
}

// Passed counts the bytes that have passed in a direction.
func (p *Proxy) Passed(d Direction) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.passed[d]
}

func (p *Proxy) each(do func(*link)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		do(l)
	}
}

func (p *Proxy) accept() {
	for {
		in, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.work.Go(func() { p.forward(in) })
	}
}

func (p *Proxy) forward(in net.Conn) {
	defer func() { _ = in.Close() }()
	if !p.wait(Requests) {
		return
	}
	out, err := net.DialTimeout(p.network, p.target, time.Second)
	if err != nil {
		return
	}
	l := newLink(p, in, out)
	p.mu.Lock()
	p.links[l] = struct{}{}
	p.mu.Unlock()
	select {
	case <-p.closed: // and Close may not have seen the link
		l.close()
	default:
	}
	var both sync.WaitGroup
	both.Go(func() { l.pump(Requests, out, in) })
	both.Go(func() { l.pump(Replies, in, out) })
	both.Wait()
	p.mu.Lock()
	delete(p.links, l)
	p.mu.Unlock()
}

// wait lets what passes be late or held back. It says whether the proxy is still open.
func (p *Proxy) wait(d Direction) bool {
	p.mu.Lock()
	thawed, delay := p.thawed, p.delay[d]
	p.mu.Unlock()
	if delay > 0 {
		t := time.NewTimer(delay)
		defer t.Stop()
		select {
		case <-t.C:
		case <-p.closed:
			return false
		}
	}
	select {
	case <-thawed:
		return true
	case <-p.closed:
		return false
	}
}

func (p *Proxy) count(d Direction, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.passed[d] += int64(n)
}
