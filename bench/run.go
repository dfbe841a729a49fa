// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/bidemq/bide/bench/result"
	"github.com/bidemq/bide/bench/system"
	"github.com/bidemq/bide/bench/workload"
)

// run measures the workloads on the systems that the flags say.
func run(ctx context.Context, args []string) error {
	o := options{out: "results.json", settings: result.Settings{Seconds: 1, LagSeconds: 10, IdleSeconds: 4, Messages: 200_000, Repetitions: 3}}
	flags := flagsOf("run", &o)
	systems := flags.String("systems", "short", "systems, separated by commas; short or all")
	workloads := flags.String("workloads", "all", "workloads, separated by commas; or all")
	if err := flags.Parse(args); err != nil {
		return err
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
	return execute(ctx, o, described(specs), schedule(specs, loads, o.settings))
}

// described is what the results say of systems.
func described(specs []system.Spec) []result.System {
	all := make([]result.System, len(specs))
	for i, s := range specs {
		all[i] = s.System
	}
	return all
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
