// SPDX-License-Identifier: Apache-2.0

// Command bide enqueues, handles and looks after delayed messages, in a directory or in Redis.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// untilInterrupted returns a context that the first interrupt ends, for commands that have something
// to bring to its end. The second interrupt runs kill and ends the program. Commands that do not use
// it end at the first.
func untilInterrupted(ctx context.Context, kill func()) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	ended := make(chan struct{})
	go func() {
		select {
		case <-signals:
			cancel()
		case <-ended:
			return
		}
		select {
		case <-signals:
			kill()
			os.Exit(interrupted)
		case <-ended:
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(ended)
		cancel()
	}
}
