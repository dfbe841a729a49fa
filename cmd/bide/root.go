// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/storage"
)

// interrupted is the exit code of what was interrupted before its end, as shells have it.
const interrupted = 130

// defaultStore is where messages are kept unless --store or BIDE_STORE says otherwise.
const defaultStore = "pebble:.bide"

// app is one run of the program: where it reads and writes, and what every command is told.
type app struct {
	in       io.Reader
	out, err io.Writer

	store string
	json  bool
}

// run is the program without its process. It returns the exit code.
func run(ctx context.Context, args []string, in io.Reader, out, errw io.Writer) int {
	checked := &checkedWriter{w: out}
	a := &app{in: in, out: checked, err: errw}
	root := a.root()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(checked)
	root.SetErr(errw)
	err := cmp.Or(root.ExecuteContext(ctx), checked.err)
	if err == nil {
		return 0
	}
	if e, ok := errors.AsType[*exitError](err); ok {
		return e.code
	}
	fmt.Fprintf(errw, "bide: %s\n", strings.TrimPrefix(err.Error(), "bide: "))
	return exitCode(err)
}

// exitCode says in the exit code of what kind an error is, for scripts.
func exitCode(err error) int {
	for _, c := range []struct {
		kind error
		code int
	}{
		{bide.ErrInvalid, 2},
		{bide.ErrTooLarge, 2},
		{bide.ErrFormat, 2},
		{errProblems, 2},
		{bide.ErrNotFound, 3},
		{bide.ErrUnavailable, 4},
		{bide.ErrClosed, 4},
		{context.DeadlineExceeded, 4},
		{bide.ErrConflict, 5},
		{bide.ErrExpired, 5},
		{bide.ErrFull, 5},
		{bide.ErrLocked, 5},
		{bide.ErrLockLost, 5},
		{context.Canceled, interrupted},
	} {
		if errors.Is(err, c.kind) {
			return c.code
		}
	}
	return 1
}

const longHelp = `bide keeps messages until they are due and hands them to a handler at least once.

Exit codes: 0 done, 1 failed, 2 the arguments can never work, 3 no such message,
4 the store cannot be used at the moment, 5 the message is in a state that refuses this, or
somebody else has the lock, 130 interrupted.`

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "bide",
		Short:         "A delay and message queue",
		Long:          longHelp,
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       version(),
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return invalid("unknown command %q; bide --help lists them", args[0])
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	flags := root.PersistentFlags()
	flags.StringVar(&a.store, "store", "", "where messages are kept: pebble:DIR, mem:, redis://HOST, rediss://, redis+unix:///SOCKET,\n"+
		"redis+sentinel://, redis+cluster://; also BIDE_STORE (default "+defaultStore+")")
	flags.BoolVar(&a.json, "json", false, "print JSON, an object a line")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return invalid("%v", err) })
	root.AddCommand(
		a.demo(), a.demoConsumer(), a.enqueue(), a.work(),
		a.ls(), a.get(), a.cancel(), a.reschedule(), a.edit(), a.redrive(), a.purge(),
		a.queues(), a.keys(), a.stats(), a.pause(), a.resume(), a.configure(), a.repair(), a.imports(), a.doctor(),
		a.bind(), a.unbind(), a.topics(), a.publish(), a.lock(),
	)
	for _, c := range root.Commands() {
		c.Args = usage(c.Args)
		if c.ValidArgsFunction == nil {
			c.ValidArgsFunction = a.completeQueue
		}
	}
	return root
}

// usage makes a wrong number of arguments an invalid call.
func usage(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if check == nil {
			return nil
		}
		if err := check(c, args); err != nil {
			return invalid("%v; usage: %s", err, c.UseLine())
		}
		return nil
	}
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{storage.ErrInvalid}, args...)...)
}

// url is the store that was asked for, "" if none was.
func (a *app) url() string { return cmp.Or(a.store, os.Getenv("BIDE_STORE")) }

func (a *app) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// with runs do with a client of the store, and closes both.
func (a *app) with(ctx context.Context, do func(*bide.Client) error) (err error) {
	store := cmp.Or(a.url(), defaultStore)
	if store == "mem:" {
		return invalid("mem: forgets everything when this command ends; only demo can use it")
	}
	engine, err := openStore(ctx, store, a.logger())
	if err != nil {
		return err
	}
	client := bide.NewClient(engine, bide.ClientConfig{Logger: a.logger()})
	defer func() {
		err = errors.Join(err, client.Close(context.WithoutCancel(ctx)), engine.Close())
	}()
	return do(client)
}

// isTerminal says whether a person is watching.
func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// version is that of the module, as the program was built.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Version
	}
	return "unknown"
}

// completeQueue completes the first argument, which is a queue.
func (a *app) completeQueue(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	var names []string
	if len(args) == 0 && strings.Contains(c.Use, "QUEUE") {
		_ = a.with(c.Context(), func(client *bide.Client) error { // what cannot be read is not completed
			for name, err := range client.Queues(c.Context()) {
				if err != nil {
					return err
				}
				names = append(names, name)
			}
			return nil
		})
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeStates completes a flag that takes states.
func completeStates(c *cobra.Command, states ...storage.State) {
	names := make([]string, len(states))
	for i, s := range states {
		names[i] = s.String()
	}
	// The only error is that of a flag which is not there.
	_ = c.RegisterFlagCompletionFunc("state", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp))
}

// checkedWriter remembers that something could not be written, so that a full disk does not look
// like success.
type checkedWriter struct {
	w   io.Writer
	err error
}

func (c *checkedWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	if err != nil && c.err == nil {
		c.err = fmt.Errorf("write the output: %w", err)
	}
	return n, err
}
