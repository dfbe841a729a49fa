// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/storage"
)

// exitSnooze is what a command exits with that wants its message later: EX_TEMPFAIL of sysexits.h.
const exitSnooze = 75

// stopGrace is how long a command that was told to end has before it is killed.
const stopGrace = 5 * time.Second

// printer returns a handler that prints messages as JSON lines.
func (a *app) printer() bide.Handler {
	var mu sync.Mutex
	return func(_ context.Context, d *bide.Delivery[[]byte]) error {
		data, err := json.Marshal(show(*d.Record()))
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		_, err = a.out.Write(append(data, '\n'))
		return err
	}
}

// commander returns a handler that runs the command for each message.
func (a *app) commander(w working) bide.Handler {
	out, errw := &lockedWriter{w: a.out}, &lockedWriter{w: a.err}
	return func(ctx context.Context, d *bide.Delivery[[]byte]) error {
		tail := &lastLine{}
		cmd := exec.CommandContext(ctx, w.command[0], w.command[1:]...)
		cmd.Stdin = bytes.NewReader(d.Body)
		cmd.Stdout = out
		cmd.Stderr = io.MultiWriter(errw, tail)
		cmd.Env = append(os.Environ(), environment(d)...)
		// A group of its own: an interrupt of the terminal is for bide, which lets commands finish.
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
		cmd.WaitDelay = stopGrace
		err := cmd.Run()
		if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == exitSnooze {
			return bide.Snooze(w.snooze)
		}
		if err != nil && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if last := tail.String(); err != nil && last != "" {
			return fmt.Errorf("%w: %s", err, last)
		}
		return err
	}
}

// environment tells a command about its message.
func environment(d *bide.Delivery[[]byte]) []string {
	env := []string{
		"BIDE_QUEUE=" + d.Queue,
		"BIDE_ID=" + d.ID,
		"BIDE_KEY=" + d.Key,
		"BIDE_ATTEMPT=" + strconv.Itoa(d.Attempt),
		"BIDE_MAX_ATTEMPTS=" + strconv.Itoa(d.MaxAttempts),
		"BIDE_DELIVERIES=" + strconv.Itoa(d.Deliveries),
		"BIDE_TOKEN=" + strconv.FormatInt(d.Token(), 10),
		"BIDE_DUE=" + d.Due.UTC().Format(time.RFC3339Nano),
	}
	for name, value := range d.Headers {
		if !strings.ContainsAny(name, "\x00=") && !strings.Contains(value, "\x00") {
			env = append(env, "BIDE_HEADER_"+strings.ToUpper(strings.ReplaceAll(name, "-", "_"))+"="+value)
		}
	}
	return env
}

// lockedWriter lets commands that run at once write to one place.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// lastLine keeps the last line that was written, as the reason of a failure.
type lastLine struct{ data []byte }

func (l *lastLine) Write(p []byte) (int, error) {
	l.data = append(l.data, p...)
	if over := len(l.data) - storage.MaxReason; over > 0 {
		l.data = l.data[over:]
	}
	return len(p), nil
}

func (l *lastLine) String() string {
	text := strings.TrimSpace(strings.ToValidUTF8(string(l.data), "?"))
	return strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
}
