// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"net"
	"sync"
)

// link is one connection through the proxy.
type link struct {
	proxy   *Proxy
	in, out net.Conn

	mu   sync.Mutex
	ends [2]*fate // by direction, nil if none is set
}

// fate is what happens to a direction of a link.
type fate struct {
	left   int64 // bytes that pass before it does
	silent bool  // what comes then is swallowed, else the link is closed
}

func newLink(p *Proxy, in, out net.Conn) *link { return &link{proxy: p, in: in, out: out} }

func (l *link) close() { _, _ = l.in.Close(), l.out.Close() }

func (l *link) end(d Direction, after int64, silent bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ends[d] = &fate{after, silent}
}

// pump forwards one direction until either side closes or its fate does.
func (l *link) pump(d Direction, to, from net.Conn) {
	defer l.close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil || !l.proxy.wait(d) {
			return
		}
		some, open := l.pass(d, buffer[:n])
		if _, err := to.Write(some); err != nil || !open {
			return
		}
		l.proxy.count(d, len(some))
	}
}

// pass says what of some bytes is forwarded, and whether the link stays open after it.
func (l *link) pass(d Direction, some []byte) (forward []byte, open bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.ends[d]
	if f == nil {
		return some, true
	}
	if int64(len(some)) < f.left {
		f.left -= int64(len(some))
		return some, true
	}
	some = some[:f.left]
	f.left = 0
	return some, f.silent
}
