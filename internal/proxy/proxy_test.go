// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/internal/proxy"
)

// echo is a server that sends back what it gets, and a proxy before it.
func echo(t *testing.T) *proxy.Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	assert.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(c, c)
				_ = c.Close()
			}()
		}
	}()
	p, err := proxy.Start("tcp", "127.0.0.1:0", "tcp", l.Addr().String())
	assert.NoError(t, err)
	t.Cleanup(p.Close)
	return p
}

type conn struct {
	t *testing.T
	net.Conn
}

func dial(t *testing.T, p *proxy.Proxy) conn {
	t.Helper()
	c, err := net.Dial("tcp", p.Address())
	assert.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return conn{t, c}
}

func (c conn) say(text string) {
	c.t.Helper()
	_, err := c.Write([]byte(text))
	assert.NoError(c.t, err)
}

// hear reads as much as there should be.
func (c conn) hear(text string) {
	c.t.Helper()
	got := make([]byte, len(text))
	_, err := io.ReadFull(c, got)
	assert.NoError(c.t, err)
	assert.Equal(c.t, string(got), text)
}

// silence reads nothing for a moment.
func (c conn) silence() {
	c.t.Helper()
	assert.NoError(c.t, c.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
	_, err := c.Read(make([]byte, 1))
	assert.ErrorIs(c.t, err, os.ErrDeadlineExceeded)
	assert.NoError(c.t, c.SetReadDeadline(time.Time{}))
}

func TestPasses(t *testing.T) {
	p := echo(t)
	c := dial(t, p)
	c.say("hello")
	c.hear("hello")
	assert.Equal(t, p.Passed(proxy.Requests), int64(5))
}

func TestCutsAtAByte(t *testing.T) {
	p := echo(t)
	c := dial(t, p)
	c.say("a")
	c.hear("a")
	p.Cut(proxy.Replies, 3)
	c.say("hello")
	c.hear("hel")
	_, err := c.Read(make([]byte, 1))
	assert.True(t, err != nil, "it is closed")
	later := dial(t, p)
	later.say("hello")
	later.hear("hello")
}

func TestSwallowsFromAByteOn(t *testing.T) {
	p := echo(t)
	c := dial(t, p)
	c.say("a")
	c.hear("a")
	p.Swallow(proxy.Requests, 2)
	c.say("hello")
	c.hear("he")
	c.say("more")
	c.silence()
}

func TestHoldsBackAndReleases(t *testing.T) {
	p := echo(t)
	c := dial(t, p)
	c.say("a")
	c.hear("a")
	p.Hold()
	c.say("hello")
	later := dial(t, p)
	later.say("too")
	c.silence()
	later.silence()
	p.Release()
	c.hear("hello")
	later.hear("too")
}

func TestDelays(t *testing.T) {
	p := echo(t)
	c := dial(t, p)
	p.Delay(proxy.Replies, 30*time.Millisecond)
	began := time.Now()
	c.say("hello")
	c.hear("hello")
	assert.True(t, time.Since(began) >= 30*time.Millisecond)
}

func TestWithoutAServer(t *testing.T) {
	p, err := proxy.Start("tcp", "127.0.0.1:0", "unix", "/nowhere")
	assert.NoError(t, err)
	defer p.Close()
	_, err = dial(t, p).Read(make([]byte, 1))
	assert.True(t, err != nil, "it is closed")
}
