// SPDX-License-Identifier: Apache-2.0

// Command bench measures bide and its peers side by side:
//
//	bench run -out results.json     every workload on every system of the short run
//	bench conditions -out conditions.json
//	                                bide under other conditions than the usual
//	bench growth -out growth.json   bide with ever more messages and consumers
//	bench report -in results.json   writes the report and its charts
//
// README.md has the workloads, and what is measured how.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/bidemq/bide/bench/relay"
	"github.com/bidemq/bide/bench/server"
	"github.com/bidemq/bide/bench/system"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := dispatch(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1) // nothing is deferred any more
	}
}

func dispatch(ctx context.Context, args []string) error {
	commands := map[string]func(ctx context.Context, args []string) error{
		"run":               run,
		"growth":            growth,
		"conditions":        conditions,
		"report":            writeReport,
		childCommand:        child,      // the harness itself uses this one
		"nats-server":       natsServer, // and these
		server.RelayCommand: relayTo,
	}
	if len(args) == 0 || commands[args[0]] == nil {
		return errors.New("usage: bench run|conditions|growth|report [flags]; bench run -h lists the flags")
	}
	err := commands[args[0]](ctx, args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	return err
}

// relayTo is run where a server is to seem far away.
func relayTo(ctx context.Context, args []string) error {
	if len(args) != 3 {
		return errors.New("usage: bench relay PORT ADDRESS DURATION")
	}
	away, err := time.ParseDuration(args[2])
	if err != nil {
		return err
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", args[0]))
	if err != nil {
		return err
	}
	return relay.Serve(ctx, listener, args[1], away)
}

// natsServer is run by the systems that are NATS.
func natsServer(ctx context.Context, args []string) error {
	if len(args) != 2 {
		return errors.New("usage: bench nats-server PORT DIRECTORY")
	}
	return system.ServeNATS(ctx, args[0], args[1])
}
