// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/bidemq/bide/bench/condition"
	"github.com/bidemq/bide/bench/report"
	"github.com/bidemq/bide/bench/result"
	"github.com/bidemq/bide/bench/system"
	"github.com/bidemq/bide/bench/workload"
)

// conditions measures bide under other conditions than the usual.
func conditions(ctx context.Context, args []string) error {
	o := options{
		out:      report.ConditionsName,
		settings: result.Settings{Seconds: 0.4, LagSeconds: 2, IdleSeconds: 4, Messages: 200_000, Repetitions: 3, Once: true},
	}
	flags := flagsOf("conditions", &o)
	names := flags.String("conditions", "all", "conditions, separated by commas; or all")
	if err := flags.Parse(args); err != nil {
		return err
	}
	chosen, err := chooseConditions(condition.Of(condition.Groups()), *names)
	if err != nil {
		return err
	}
	return vary(ctx, o, chosen)
}

// growth measures bide with ever more of something.
func growth(ctx context.Context, args []string) error {
	o := options{
		out:      report.GrowthName,
		settings: result.Settings{Seconds: 0.3, Messages: 50_000, Repetitions: 3, Once: true},
	}
	flags := flagsOf("growth", &o)
	names := flags.String("conditions", "all", "conditions, separated by commas; or all")
	greatest := flags.Int("greatest", 10_000_000, "messages that wait, at most; ten million take about 4 GB of memory")
	if err := flags.Parse(args); err != nil {
		return err
	}
	chosen, err := chooseConditions(condition.Of(condition.Growth()), *names)
	if err != nil {
		return err
	}
	return vary(ctx, o, slices.DeleteFunc(chosen, func(c condition.Condition) bool { return c.Shape.Waiting > *greatest }))
}

// vary measures bide under some conditions.
func vary(ctx context.Context, o options, chosen []condition.Condition) error {
	var specs []system.Spec
	for _, s := range system.Bide(system.Variation{}) {
		if !slices.ContainsFunc(chosen, func(c condition.Condition) bool { return slices.Contains(c.Systems, s.Name) }) {
			continue
		}
		if err := s.Available(); err != nil {
			fmt.Fprintf(os.Stderr, "%s is left out: %v\n", s.Name, err)
			continue
		}
		specs = append(specs, s)
	}
	var plan []result.Run
	for repetition := 1; repetition <= o.settings.Repetitions; repetition++ {
		for _, c := range chosen {
			for _, w := range append(workload.All(), workload.Growth()...) {
				if !slices.Contains(c.Workloads, w.Name) || repetition > 1 && (c.Once || o.settings.Once && !w.Speed) {
					continue
				}
				for _, s := range specs {
					if slices.Contains(c.Systems, s.Name) {
						plan = append(plan, result.Run{System: s.Name, Workload: w.Name, Condition: c.Name, Repetition: repetition})
					}
				}
			}
		}
	}
	return execute(ctx, o, described(specs), plan)
}

// chooseConditions that are named, and the usual one, which they are compared with.
func chooseConditions(all []condition.Condition, names string) ([]condition.Condition, error) {
	if names == "all" {
		return all, nil
	}
	wanted := strings.Split(names, ",")
	for _, name := range wanted {
		if !slices.ContainsFunc(all, func(c condition.Condition) bool { return c.Name == name }) {
			return nil, fmt.Errorf("no condition %q; there are: %s", name, list(all, func(c condition.Condition) string { return c.Name }))
		}
	}
	return slices.DeleteFunc(all, func(c condition.Condition) bool {
		return c.Name != condition.Usual && !slices.Contains(wanted, c.Name)
	}), nil
}
