// SPDX-License-Identifier: Apache-2.0

package redistest

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
)

// process is a child that does not outlive the test binary.
type process struct {
	command *exec.Cmd
	log     string
	once    sync.Once
	done    chan struct{}
}

func startProcess(dir string, env []string, program string, args ...string) (*process, error) {
	log := filepath.Join(dir, "output")
	out, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer func() { _ = out.Close() }() // the child has its own
	p := &process{command: exec.Command(program, args...), log: log, done: make(chan struct{})}
	p.command.Dir = dir
	p.command.Env = append(os.Environ(), env...)
	p.command.Stdout, p.command.Stderr = out, out
	p.command.SysProcAttr = dieWithParent()
	if err := p.command.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = p.command.Wait() // its exit says nothing that the tests want to know
		close(p.done)
	}()
	return p, nil
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

func (p *process) kill() {
	p.once.Do(func() { _ = p.command.Process.Kill() })
	<-p.done
}

func (p *process) output() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
