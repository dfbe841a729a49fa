// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/storage"
)

// Main runs an example as a program: it parses the flags, --store among them, opens the store, and
// ends the process with 1 if the example fails. An interrupt ends the example's context.
func Main(example func(ctx context.Context, out io.Writer, client *bide.Client) error) {
	store := flag.String("store", "mem:", "where messages are kept: mem:, a directory, redis://HOST, redis+sentinel://, redis+cluster://")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := withStore(ctx, *store, func(client *bide.Client) error { return example(ctx, os.Stdout, client) })
	stop()
	if err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func withStore(ctx context.Context, address string, do func(*bide.Client) error) error {
	engine, err := Open(ctx, address)
	if err != nil {
		return err
	}
	return With(ctx, engine, do)
}

// With calls do with a client of an engine, and closes both.
func With(ctx context.Context, engine storage.Engine, do func(*bide.Client) error) error {
	client := bide.NewClient(engine, bide.ClientConfig{})
	err := do(client)
	return errors.Join(err, client.Close(context.WithoutCancel(ctx)), engine.Close())
}
