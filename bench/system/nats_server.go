// SPDX-License-Identifier: Apache-2.0

package system

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	natsserver "github.com/nats-io/nats-server/v2/server"
)

// ServeNATS is the NATS server as a process of its own, which its users have too: with JetStream, on
// a port, with its data in a directory. It ends with ctx.
func ServeNATS(ctx context.Context, port, dir string) error {
	n, err := strconv.Atoi(port)
	if err != nil {
		return fmt.Errorf("port of nats: %w", err)
	}
	srv, err := natsserver.NewServer(&natsserver.Options{
		Host: "127.0.0.1", Port: n, JetStream: true, StoreDir: dir, NoSigs: true, NoLog: true,
		JetStreamMaxMemory: 8 << 30, JetStreamMaxStore: 32 << 30,
	})
	if err != nil {
		return fmt.Errorf("nats server: %w", err)
	}
	srv.Start()
	<-ctx.Done()
	srv.Shutdown()
	srv.WaitForShutdown()
	if err := context.Cause(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}
