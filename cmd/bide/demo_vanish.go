// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/spf13/cobra"

	"github.com/bidemq/bide"
)

// vanishWithin bounds how long the consumer that vanishes waits for messages.
const vanishWithin = 5 * time.Second

// abandonLeases claims messages and never settles them: the embedded engine lives in this process,
// so that no consumer can be killed without it.
func (d *demo) abandonLeases(ctx context.Context) (string, error) {
	ctx, stop := context.WithTimeout(ctx, vanishWithin)
	defer stop()
	held := 0
	for _, err := range d.client.Deliveries(ctx, d.queue.Name(), bide.ClaimOptions{Limit: 1, Lease: demoLease, By: "the consumer that vanishes"}) {
		if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
			break
		}
		if err != nil {
			return "", err
		}
		if held++; held == demoHeld {
			break
		}
	}
	return fmt.Sprintf("a consumer in this process dropped %d messages that it had claimed", held), nil
}

// killConsumer returns a way to vanish for real: a process is killed.
func (d *demo) killConsumer(store string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		ctx, stop := context.WithTimeout(ctx, vanishWithin)
		defer stop()
		program, err := os.Executable()
		if err != nil {
			return "", err
		}
		child := exec.CommandContext(ctx, program, "demo-consumer", d.queue.Name()) // killed with ctx
		child.Env = append(os.Environ(), "BIDE_STORE="+store)
		child.Stderr = d.app.err
		out, err := child.StdoutPipe()
		if err != nil {
			return "", err
		}
		if err := child.Start(); err != nil {
			return "", err
		}
		held := countLines(out, demoHeld)
		killed := child.Process.Kill()
		_ = child.Wait() // says that it was killed
		if killed != nil && !errors.Is(killed, os.ErrProcessDone) {
			return "", killed
		}
		return fmt.Sprintf("process %d was killed (SIGKILL) with %d messages in its hands", child.Process.Pid, held), nil
	}
}

// countLines counts lines up to most, or to the end.
func countLines(r io.Reader, most int) int {
	n := 0
	for scan := bufio.NewScanner(r); n < most && scan.Scan(); {
		n++
	}
	return n
}

// demoConsumer is the process that is killed. It takes messages, says so, and never comes to an end
// with them.
func (a *app) demoConsumer() *cobra.Command {
	return &cobra.Command{
		Use:    "demo-consumer QUEUE",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return a.with(c.Context(), func(client *bide.Client) error {
				consumer := bide.NewConsumer(client, bide.ConsumerConfig{Concurrency: demoHeld, Lease: demoLease, Name: "the consumer that vanishes"})
				consumer.Handle(args[0], func(ctx context.Context, d *bide.Delivery[[]byte]) error {
					fmt.Fprintln(a.out, d.ID)
					<-ctx.Done()
					return context.Cause(ctx)
				})
				return consumer.Run(c.Context())
			})
		},
	}
}
