// SPDX-License-Identifier: Apache-2.0

// Package relay makes a server seem to be far away: what is sent to it and what it answers arrive
// later, but as much at a time as without.
package relay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// Sizes of what is under way on one connection in one direction.
const (
	chunkBytes = 64 << 10
	chunks     = 4096
)

// Serve accepts connections and passes what is sent on them to an address and back, each way that
// much later. It returns when ctx has ended.
func Serve(ctx context.Context, listener net.Listener, address string, away time.Duration) error {
	defer context.AfterFunc(ctx, func() { _ = listener.Close() })()
	var pairs sync.WaitGroup
	defer pairs.Wait()
	for {
		near, err := listener.Accept()
		if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("relay: %w", err)
		}
		pairs.Go(func() { pair(ctx, near, address, away) })
	}
}

// pair passes on what comes from both sides, until one of them closes.
func pair(ctx context.Context, near net.Conn, address string, away time.Duration) {
	defer func() { _ = near.Close() }()
	var dialer net.Dialer
	far, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return
	}
	defer func() { _ = far.Close() }()
	defer context.AfterFunc(ctx, func() { _, _ = near.Close(), far.Close() })()
	var ways sync.WaitGroup
	ways.Go(func() { pass(far, near, away) })
	ways.Go(func() { pass(near, far, away) })
	ways.Wait()
}

// chunk was read at an instant.
type chunk struct {
	bytes []byte
	due   time.Time
}

// pass hands on what is read, later, and closes the writing end after the last of it.
func pass(to, from net.Conn, away time.Duration) {
	under := make(chan chunk, chunks)
	go func() {
		defer close(under)
		buffer := make([]byte, chunkBytes)
		for {
			n, err := from.Read(buffer)
			if n > 0 {
				under <- chunk{bytes.Clone(buffer[:n]), time.Now().Add(away)}
			}
			if err != nil {
				return
			}
		}
	}()
	var failed error
	for c := range under {
		if failed != nil {
			continue
		}
		if d := time.Until(c.due); d > 0 {
			<-time.After(d)
		}
		_, failed = to.Write(c.bytes)
	}
	if half, ok := to.(interface{ CloseWrite() error }); ok && failed == nil {
		_ = half.CloseWrite() // what is left of the pair ends with the other way
		return
	}
	_ = to.Close()
}
