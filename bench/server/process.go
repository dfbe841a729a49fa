// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// patience bounds how long a server may take to start, and to end.
const patience = 10 * time.Second

// Program to run.
type Program struct {
	Path string
	Role Role
	User *syscall.Credential // nil is the harness's own
	Stop syscall.Signal      // that ends it at once, 0 is SIGKILL
}

// Role says whom the time of a program is put down to.
type Role uint8

// The roles.
const (
	Server  Role = iota // of the system
	Client              // producers and handlers, beside the harness itself
	Scenery             // part of the conditions, such as a slow network
)

// process does not outlive the harness.
type process struct {
	Program
	command *exec.Cmd
	log     string
	done    chan struct{}
}

// start runs a program. What it prints goes into a file, or where it is told to.
func start(log string, program Program, args []string, in io.Reader, out io.Writer) (*process, error) {
	file, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", program.Path, err)
	}
	defer func() { _ = file.Close() }() // the process has its own
	program.Stop = cmp.Or(program.Stop, syscall.SIGKILL)
	p := &process{Program: program, command: exec.Command(program.Path, args...), log: log, done: make(chan struct{})}
	p.command.Stdin, p.command.Stdout, p.command.Stderr = in, file, file
	if out != nil {
		p.command.Stdout = out
	}
	p.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: program.Stop, Setpgid: true, Credential: program.User}
	if err := p.command.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", program.Path, err)
	}
	go func() {
		_ = p.command.Wait() // that it ended is all there is to know
		close(p.done)
	}()
	return p, nil
}

func (p *process) pid() int { return p.command.Process.Pid }

// end ends the process, by force if it does not want to.
func (p *process) end() {
	_ = p.command.Process.Signal(p.Stop) // the only error is that it has ended
	force := time.AfterFunc(patience, func() { _ = p.command.Process.Kill() })
	defer force.Stop()
	<-p.done
}

// accepts waits until the process listens on an address.
func (p *process) accepts(ctx context.Context, address string) error {
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	var dialer net.Dialer
	for {
		if c, err := dialer.DialContext(ctx, "tcp", address); err == nil {
			return c.Close()
		}
		select {
		case <-p.done:
			return fmt.Errorf("%s ended: %s", p.Path, p.output())
		case <-ctx.Done():
			return fmt.Errorf("%s does not listen: %w", p.Path, ctx.Err())
		case <-tick.C:
		}
	}
}

func (p *process) output() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
