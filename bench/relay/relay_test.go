// SPDX-License-Identifier: Apache-2.0

package relay_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"testing"
	"time"

	"github.com/bidemq/bide/bench/relay"
	"github.com/bidemq/bide/internal/assert"
)

// echo answers everything with the same, until the test ends.
func echo(t *testing.T) string {
	listener := listen(t)
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(c, c)
				_ = c.Close()
			}()
		}
	}()
	return listener.Addr().String()
}

func listen(t *testing.T) net.Listener {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	assert.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	return listener
}

func dial(t *testing.T, away time.Duration) net.Conn {
	address, listener := echo(t), listen(t)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- relay.Serve(ctx, listener, address, away) }()
	t.Cleanup(func() {
		stop()
		assert.NoError(t, <-done)
	})
	c, err := net.Dial("tcp", listener.Addr().String())
	assert.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestARoundTripTakesBothWays(t *testing.T) {
	const away = 20 * time.Millisecond
	c := dial(t, away)
	began := time.Now()
	_, err := io.WriteString(c, "there\n")
	assert.NoError(t, err)
	line, err := bufio.NewReader(c).ReadString('\n')
	assert.NoError(t, err)
	assert.Equal(t, line, "there\n")
	assert.True(t, time.Since(began) >= 2*away, time.Since(began))
}

// Many megabytes are under way at a time: they do not take many times as long as one byte.
func TestWhatIsFarAwayIsNotSlow(t *testing.T) {
	const size = 16 << 20
	c := dial(t, 10*time.Millisecond)
	began := time.Now()
	go func() { _, _ = c.Write(make([]byte, size)) }()
	n, err := io.CopyN(io.Discard, c, size)
	assert.NoError(t, err)
	assert.Equal(t, n, int64(size))
	assert.True(t, time.Since(began) < 2*time.Second, time.Since(began)) // one chunk at a time would take 5 s
}

func TestTheEndIsPassedOn(t *testing.T) {
	c := dial(t, time.Millisecond)
	_, err := io.WriteString(c, "last")
	assert.NoError(t, err)
	tcp, ok := c.(*net.TCPConn)
	assert.True(t, ok)
	assert.NoError(t, tcp.CloseWrite())
	rest, err := io.ReadAll(c)
	assert.NoError(t, err)
	assert.Equal(t, string(rest), "last")
}
