// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/bidemq/bide"
)

// locking is what the flags of lock say.
type locking struct {
	ttl   time.Duration
	wait  time.Duration
	now   bool
	given bool // --wait was
}

// exitError is the end of a command that failed and has said so itself.
type exitError struct{ code int }

// Error tells the code.
func (e *exitError) Error() string { return fmt.Sprintf("the command exited with %d", e.code) }

func (a *app) lock() *cobra.Command {
	var l locking
	c := &cobra.Command{
		Use:   "lock NAME -- COMMAND [ARG...]",
		Short: "Run a command while holding a lock",
		Long: `Run a command while holding a lock of the store, so that it runs once at a time wherever it is
started. The lock is kept while the command runs, and ends by itself if this program is killed. The
command finds the lock's fencing token in BIDE_LOCK_TOKEN.

Exits with what the command exits with, with 5 if somebody else has the lock (at once with
--nonblock, after the time of --wait), and with 5 if the lock was lost: then the command was asked
to end. A directory has one process at a time; locks of several need a server.`,
		Example: `  bide lock nightly-report --nonblock -- ./report.sh`,
		Args:    cobra.MinimumNArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			if c.ArgsLenAtDash() != 1 {
				return invalid("the command is missing; usage: %s", c.UseLine())
			}
			l.given = c.Flags().Changed("wait")
			if l.now && l.given || l.wait < 0 {
				return invalid("--nonblock and --wait exclude each other, and no wait is negative")
			}
			path, err := exec.LookPath(args[1])
			if err != nil {
				return invalid("%v", err)
			}
			ctx, stop := untilInterrupted(c.Context(), func() {})
			defer stop()
			return a.with(ctx, func(client *bide.Client) error { return a.runLocked(ctx, client, args[0], l, path, args[1:]) })
		},
	}
	f := c.Flags()
	f.DurationVar(&l.ttl, "ttl", 30*time.Second, "how long the lock outlives this program if it is killed")
	f.DurationVar(&l.wait, "wait", 0, "wait at most this long for the lock (default is without end)")
	f.BoolVarP(&l.now, "nonblock", "n", false, "do not wait")
	return c
}

func (a *app) runLocked(ctx context.Context, client *bide.Client, name string, l locking, path string, argv []string) (err error) {
	take := client.Lock
	if l.now || l.given && l.wait == 0 {
		take = client.TryLock
	}
	held, err := take(ctx, name, bide.LockConfig{TTL: l.ttl, Wait: l.wait})
	if err != nil {
		return err
	}
	defer func() {
		if bad := held.Unlock(ctx); bad != nil && (err == nil || errors.Is(bad, bide.ErrLockLost)) {
			err = bad
		}
	}()
	cmd := exec.CommandContext(held.Context(), path, argv[1:]...)
	cmd.Args[0] = argv[0]
	cmd.Env = append(os.Environ(), "BIDE_LOCK_TOKEN="+strconv.FormatInt(held.Token(), 10))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = a.in, a.out, a.err
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // the terminal interrupts it by itself
	cmd.WaitDelay = stopGrace
	err = cmd.Run()
	if e, ok := errors.AsType[*exec.ExitError](err); ok && e.Exited() {
		return &exitError{e.ExitCode()}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
