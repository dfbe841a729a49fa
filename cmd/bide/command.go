// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"time"

	"github.com/bidemq/bide"
)

const (
	exitSnooze  = 75                     // what a command exits with that wants its message later: EX_TEMPFAIL of sysexits.h
	stopGrace   = 5 * time.Second        // for a command that was asked to end, before it is killed
	outputGrace = 200 * time.Millisecond // for the output of a command that has ended; what it left running may keep it open
)

// commander runs a command for each message, or batch of them.
type commander struct {
	argv   []string
	snooze time.Duration
	out    *lockedWriter
	err    *lockedWriter

	mu      sync.Mutex
	running map[int]bool // process groups by the id of their command
}

func (a *app) newCommander(w working) *commander {
	return &commander{
		argv: w.command, snooze: w.snooze,
		out: &lockedWriter{w: a.out}, err: &lockedWriter{w: a.err},
		running: map[int]bool{},
	}
}

// kill ends every command that runs, with what it has started.
func (c *commander) kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for pid := range c.running {
		endGroup(pid)
	}
}

// handle is a [bide.Handler].
func (c *commander) handle(ctx context.Context, d *bide.Delivery[[]byte]) error {
	return c.decide(ctx, d.Body, environment(d))
}

// handleBatch is a [bide.BatchHandler].
func (c *commander) handleBatch(ctx context.Context, key string, ds []*bide.Delivery[[]byte]) error {
	lines, err := jsonLines(ds)
	if err != nil {
		return err
	}
	return c.decide(ctx, lines, []string{"BIDE_QUEUE=" + ds[0].Queue, "BIDE_KEY=" + key, "BIDE_COUNT=" + strconv.Itoa(len(ds))})
}

// decide runs the command and translates its end into the outcome of what it was given.
func (c *commander) decide(ctx context.Context, stdin []byte, env []string) error {
	tail := &lastLine{}
	state, err := c.run(ctx, stdin, env, tail)
	switch {
	case ctx.Err() != nil && (err != nil || !state.Success()):
		return context.Cause(ctx)
	case err != nil:
		return err
	case state.Success():
		return nil
	case state.ExitCode() == exitSnooze:
		return bide.Snooze(c.snooze)
	}
	if last := tail.String(); last != "" {
		return fmt.Errorf("%s: %s", state, last)
	}
	return errors.New(state.String())
}

// run runs the command to its end. What it leaves running goes on, unless ctx has ended.
func (c *commander) run(ctx context.Context, stdin []byte, env []string, tail *lastLine) (*os.ProcessState, error) {
	cmd := exec.CommandContext(ctx, c.argv[0], c.argv[1:]...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdin = bytes.NewReader(stdin)
	ownGroup(cmd)
	cmd.Cancel = func() error { return askToEnd(cmd.Process.Pid) }
	cmd.WaitDelay = stopGrace
	var output sync.WaitGroup
	stdout, err := pipeTo(&output, c.out)
	if err != nil {
		return nil, err
	}
	stderr, err := pipeTo(&output, io.MultiWriter(c.err, tail))
	if err != nil {
		_ = stdout.Close()
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	err = cmd.Start()
	_, _ = stdout.Close(), stderr.Close() // the command has its own
	if err != nil {
		return nil, err
	}
	c.note(cmd.Process.Pid, true)
	defer c.note(cmd.Process.Pid, false)
	err = cmd.Wait()
	if ctx.Err() != nil {
		endGroup(cmd.Process.Pid)
	}
	waitAtMost(&output, outputGrace)
	if _, exited := errors.AsType[*exec.ExitError](err); exited || errors.Is(err, exec.ErrWaitDelay) || ctx.Err() != nil {
		err = nil // the state says it
	}
	return cmd.ProcessState, err
}

func (c *commander) note(pid int, running bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if running {
		c.running[pid] = true
	} else {
		delete(c.running, pid)
	}
}

// pipeTo returns a file whose content is written to w, for as long as anybody has it open.
func pipeTo(copying *sync.WaitGroup, w io.Writer) (*os.File, error) {
	r, f, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	copying.Go(func() {
		_, _ = io.Copy(w, r)
		_ = r.Close()
	})
	return f, nil
}

func waitAtMost(wg *sync.WaitGroup, d time.Duration) {
	done := make(chan struct{})
	go func() {
		wg.Wait()
		close(done)
	}()
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
	}
}
