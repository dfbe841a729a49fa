// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/bidemq/bide/bench/machine"
	"github.com/bidemq/bide/bench/result"
	"github.com/bidemq/bide/bench/system"
	"github.com/bidemq/bide/bench/workload"
)

// run measures what the flags say and writes the results, after every run so that nothing is lost
// when it is interrupted.
func run(ctx context.Context, args []string) error {
	var settings result.Settings
	flags := flag.NewFlagSet("run", flag.ContinueOnError)
	systems := flags.String("systems", "short", "systems, separated by commas; short or all")
	workloads := flags.String("workloads", "all", "workloads, separated by commas; or all")
	out := flags.String("out", "results.json", "file for the results")
	dir := flags.String("dir", os.TempDir(), "where the data of servers and engines lies while they run")
	profiles := flags.String("profiles", "", "directory for CPU profiles and Redis command statistics of each run")
	flags.Float64Var(&settings.Seconds, "seconds", 1, "how long producers enqueue; backlogs follow from it")
	flags.Float64Var(&settings.LagSeconds, "lag", 10, "seconds over which the due times of W4 are spread")
	flags.Float64Var(&settings.IdleSeconds, "idle", 4, "seconds that W6 looks at")
	flags.IntVar(&settings.Messages, "messages", 200_000, "messages of a backlog, at most")
	flags.IntVar(&settings.Repetitions, "repetitions", 3, "repetitions of each workload, interleaved")
	flags.BoolVar(&settings.Once, "once", false, "repeat only what measures speed")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *profiles != "" {
		if err := os.MkdirAll(*profiles, 0o755); err != nil {
			return err
		}
	}
	specs, missing, err := chooseSystems(*systems)
	if err != nil {
		return err
	}
	for _, m := range missing {
		fmt.Fprintln(os.Stderr, m)
	}
	loads, err := chooseWorkloads(*workloads)
	if err != nil {
		return err
	}
	f := &result.File{Began: time.Now(), Commit: machine.Commit(ctx), Settings: settings}
	if f.Machine, err = machine.Describe(ctx, *dir); err != nil {
		return err
	}
	for _, s := range specs {
		f.Systems = append(f.Systems, s.System)
	}
	plan := schedule(specs, loads, settings)
	for i, p := range plan {
		progress := newProgress(f.Began, i, len(plan), p)
		load := machine.Load()
		r, err := spawn(ctx, order{System: p.System, Workload: p.Workload, Settings: settings, Dir: *dir, Profile: *profiles})
		if ctx.Err() != nil {
			return fmt.Errorf("interrupted; %d of %d runs are in %s", i, len(plan), *out)
		}
		if err != nil {
			r = p
			r.Error = err.Error()
		}
		r.Repetition, r.Load = p.Repetition, load
		progress.ended(r)
		f.Runs = append(f.Runs, r)
		f.Ended = time.Now()
		if err := f.Write(*out); err != nil {
			return err
		}
	}
	return failures(f)
}

// schedule interleaves the systems, so that what the machine does besides hits all of them alike.
func schedule(specs []system.Spec, loads []workload.Workload, settings result.Settings) []result.Run {
	var plan []result.Run
	for repetition := 1; repetition <= settings.Repetitions; repetition++ {
		for _, w := range loads {
			if repetition > 1 && settings.Once && !w.Speed {
				continue
			}
			for _, s := range specs {
				if w.Suits(s) {
					plan = append(plan, result.Run{System: s.Name, Workload: w.Name, Repetition: repetition})
				}
			}
		}
	}
	return plan
}

// chooseSystems that are named, without those whose programs this machine does not have, unless they
// are named one by one.
func chooseSystems(names string) (specs []system.Spec, missing []string, err error) {
	all := system.All()
	wanted := strings.Split(names, ",")
	for _, w := range wanted {
		if w != "short" && w != "all" && !slices.ContainsFunc(all, func(s system.Spec) bool { return s.Name == w }) {
			return nil, nil, fmt.Errorf("no system %q; there are: %s", w, list(all, func(s system.Spec) string { return s.Name }))
		}
	}
	for _, s := range all {
		named := slices.Contains(wanted, s.Name)
		if !named && !slices.Contains(wanted, "all") && (!slices.Contains(wanted, "short") || !s.Short) {
			continue
		}
		absent := s.Available()
		switch {
		case absent == nil:
			specs = append(specs, s)
		case named:
			return nil, nil, fmt.Errorf("%s cannot be run: %w", s.Name, absent)
		default:
			missing = append(missing, fmt.Sprintf("%s is left out: %v", s.Name, absent))
		}
	}
	return specs, missing, nil
}

func chooseWorkloads(names string) ([]workload.Workload, error) {
	all := workload.All()
	if names == "all" {
		return all, nil
	}
	var chosen []workload.Workload
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(all, func(w workload.Workload) bool { return w.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("no workload %q; there are: %s", name, list(all, func(w workload.Workload) string { return w.Name }))
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

func list[T any](all []T, name func(T) string) string {
	names := make([]string, len(all))
	for i, v := range all {
		names[i] = name(v)
	}
	return strings.Join(names, ", ")
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
