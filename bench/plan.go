// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/bidemq/bide/bench/machine"
	"github.com/bidemq/bide/bench/result"
)

// options that every kind of measurement has.
type options struct {
	settings result.Settings
	out      string
	dir      string
	profiles string
}

// flagsOf a command, with its own defaults.
func flagsOf(command string, o *options) *flag.FlagSet {
	flags := flag.NewFlagSet(command, flag.ContinueOnError)
	flags.StringVar(&o.out, "out", o.out, "file for the results")
	flags.StringVar(&o.dir, "dir", os.TempDir(), "where the data of servers and engines lies while they run")
	flags.StringVar(&o.profiles, "profiles", "", "directory for CPU profiles and Redis command statistics of each run")
	flags.Float64Var(&o.settings.Seconds, "seconds", o.settings.Seconds, "how long producers enqueue; backlogs follow from it")
	flags.Float64Var(&o.settings.LagSeconds, "lag", o.settings.LagSeconds, "seconds over which the due times of W4 are spread")
	flags.Float64Var(&o.settings.IdleSeconds, "idle", o.settings.IdleSeconds, "seconds that W6 looks at")
	flags.IntVar(&o.settings.Messages, "messages", o.settings.Messages, "messages of a backlog, at most")
	flags.IntVar(&o.settings.Repetitions, "repetitions", o.settings.Repetitions, "repetitions of each workload, interleaved")
	flags.BoolVar(&o.settings.Once, "once", o.settings.Once, "repeat only what measures speed")
	return flags
}

// execute runs a plan and writes the results, after every run so that nothing is lost when it is
// interrupted.
func execute(ctx context.Context, o options, systems []result.System, plan []result.Run) error {
	if o.profiles != "" {
		if err := os.MkdirAll(o.profiles, 0o755); err != nil {
			return err
		}
	}
	f := &result.File{Began: time.Now(), Commit: machine.Commit(ctx), Settings: o.settings, Systems: systems}
	var err error
	if f.Machine, err = machine.Describe(ctx, o.dir); err != nil {
		return err
	}
	for i, p := range plan {
		progress := newProgress(f.Began, i, len(plan), p)
		load := machine.Load()
		r, err := spawn(ctx, order{
			System: p.System, Workload: p.Workload, Condition: p.Condition, Settings: o.settings, Dir: o.dir, Profile: o.profiles,
		})
		if ctx.Err() != nil {
			return fmt.Errorf("interrupted; %d of %d runs are in %s", i, len(plan), o.out)
		}
		if err != nil {
			r = p
			r.Error = err.Error()
		}
		r.Repetition, r.Load = p.Repetition, load
		progress.ended(r)
		f.Runs = append(f.Runs, r)
		f.Ended = time.Now()
		if err := f.Write(o.out); err != nil {
			return err
		}
	}
	return failures(f)
}

// failures is an error if a run had one, so that a report is not made of holes unnoticed.
func failures(f *result.File) error {
	n := 0
	for _, r := range f.Runs {
		if r.Error != "" {
			n++
		}
	}
	if n > 0 {
		return fmt.Errorf("%d of %d runs failed", n, len(f.Runs))
	}
	return nil
}
