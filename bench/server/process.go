// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// patience bounds how long a server may take to start.
const patience = 10 * time.Second

// process is a server that does not outlive the harness.
type process struct {
	command *exec.Cmd
	log     string
	done    chan struct{}
}

func start(log, program string, args []string) (*process, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	defer func() { _ = out.Close() }() // the process has its own
	p := &process{command: exec.Command(program, args...), log: log, done: make(chan struct{})}
	p.command.Stdout, p.command.Stderr = out, out
	p.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if err := p.command.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	go func() {
		_ = p.command.Wait() // that it ended is all there is to know
		close(p.done)
	}()
	return p, nil
}

func (p *process) pid() int { return p.command.Process.Pid }

func (p *process) kill() {
	_ = p.command.Process.Kill() // the only error is that it has ended
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
			return fmt.Errorf("%s ended: %s", p.command.Path, p.output())
		case <-ctx.Done():
			return fmt.Errorf("%s does not listen: %w", p.command.Path, ctx.Err())
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
