// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"syscall"
	"time"

	"github.com/bidemq/bide/bench/condition"
	"github.com/bidemq/bide/bench/result"
	"github.com/bidemq/bide/bench/server"
	"github.com/bidemq/bide/bench/system"
	"github.com/bidemq/bide/bench/workload"
)

// childCommand measures one workload on one system, in a process of its own: what an earlier run left
// in memory and in the collector's books cannot touch a later one, and CPU time is this run's alone.
const childCommand = "child"

// order is what a child is to do. It comes on its standard input, the result.Run goes to its standard
// output.
type order struct {
	System    string
	Workload  string
	Condition string // "" is the usual one
	Settings  result.Settings
	Dir       string // for servers and data; exists and is empty
	Profile   string // directory that profiles are written to, "" is none
}

// name of the order, for files.
func (o *order) name() string {
	if o.Condition != "" {
		return o.System + "." + o.Workload + "." + o.Condition
	}
	return o.System + "." + o.Workload
}

// patience is how long a child has to end its servers when it is interrupted.
const patience = 10 * time.Second

// spawn runs a child to its end. It leaves nothing behind, also when ctx ends.
func spawn(ctx context.Context, o order) (result.Run, error) {
	self, err := os.Executable()
	if err != nil {
		return result.Run{}, err
	}
	if o.Dir, err = os.MkdirTemp(o.Dir, "bide-bench-"); err != nil {
		return result.Run{}, err
	}
	defer func() { _ = os.RemoveAll(o.Dir) }()
	in, err := json.Marshal(o)
	if err != nil {
		return result.Run{}, err
	}
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, self, childCommand)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), &out, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = patience
	if err := cmd.Run(); err != nil {
		return result.Run{}, fmt.Errorf("%s on %s: %w", o.Workload, o.System, err)
	}
	r := result.Run{}
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		return result.Run{}, fmt.Errorf("%s on %s: read its answer: %w", o.Workload, o.System, err)
	}
	return r, nil
}

// child does what is ordered on standard input.
func child(ctx context.Context, _ []string) error {
	var o order
	if err := json.NewDecoder(os.Stdin).Decode(&o); err != nil {
		return fmt.Errorf("read the order: %w", err)
	}
	defer func() { _ = os.RemoveAll(o.Dir) }() // whoever ordered it may have been killed
	r := result.Run{System: o.System, Workload: o.Workload, Condition: o.Condition}
	var err error
	if r.Metrics, err = measure(ctx, o); err != nil {
		r.Metrics, r.Error = nil, err.Error()
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}

func measure(ctx context.Context, o order) (map[string]float64, error) {
	specs, shape := system.All(), workload.Shape{}
	if o.Condition != "" {
		c, ok := condition.Find(o.Condition)
		if !ok {
			return nil, fmt.Errorf("no condition %q", o.Condition)
		}
		specs, shape = system.Bide(c.Variation), c.Shape
	}
	loads := append(workload.All(), workload.Growth()...)
	spec := slices.IndexFunc(specs, func(s system.Spec) bool { return s.Name == o.System })
	load := slices.IndexFunc(loads, func(w workload.Workload) bool { return w.Name == o.Workload })
	if spec < 0 || load < 0 {
		return nil, fmt.Errorf("no such system or workload: %s, %s", o.System, o.Workload)
	}
	host, err := server.NewHost(o.Dir)
	if err != nil {
		return nil, err
	}
	defer host.Close()
	stop, err := profile(o)
	if err != nil {
		return nil, err
	}
	defer stop()
	metrics, err := loads[load].Run(ctx, specs[spec], host, o.Settings, shape)
	if err == nil && o.Profile != "" && host.HasRedis() {
		err = keepCommandStats(ctx, host, o)
	}
	return metrics, err
}

// profile writes a CPU profile until stop is called, if there is to be one.
func profile(o order) (stop func(), err error) {
	if o.Profile == "" {
		return func() {}, nil
	}
	f, err := os.Create(filepath.Join(o.Profile, o.name()+".cpu"))
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, err
	}
	return func() {
		pprof.StopCPUProfile()
		_ = f.Close() // a profile that is cut short cannot be read, which says enough
	}, nil
}

func keepCommandStats(ctx context.Context, host *server.Host, o order) error {
	text, err := host.CommandStats(ctx)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(o.Profile, o.name()+".commandstats"), []byte(text), 0o644)
}
