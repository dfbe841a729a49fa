// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/bidemq/bide/bench/condition"
	"github.com/bidemq/bide/bench/result"
	"github.com/bidemq/bide/bench/system"
	"github.com/bidemq/bide/bench/workload"
)

// conditions measures bide under other conditions than the usual.
func conditions(ctx context.Context, args []string) error {
	o := options{
		out:      "conditions.json",
		settings: result.Settings{Seconds: 0.4, LagSeconds: 2, IdleSeconds: 4, Messages: 200_000, Repetitions: 3, Once: true},
	}
	flags := flagsOf("conditions", &o)
	names := flags.String("conditions", "all", "conditions, separated by commas; or all")
	if err := flags.Parse(args); err != nil {
		return err
	}
	chosen, err := chooseConditions(*names)
	if err != nil {
		return err
	}
	var specs []system.Spec
	for _, s := range system.Bide(system.Variation{}) {
		if s.Available() == nil && slices.ContainsFunc(chosen, func(c condition.Condition) bool { return slices.Contains(c.Systems, s.Name) }) {
			specs = append(specs, s)
		}
	}
	var plan []result.Run
	for repetition := 1; repetition <= o.settings.Repetitions; repetition++ {
		for _, c := range chosen {
			for _, w := range workload.All() {
				if !slices.Contains(c.Workloads, w.Name) || repetition > 1 && o.settings.Once && !w.Speed {
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
func chooseConditions(names string) ([]condition.Condition, error) {
	all := condition.All()
	if names == "all" {
		return all, nil
	}
	wanted := strings.Split(names, ",")
	for _, name := range wanted {
		if _, ok := condition.Find(name); !ok {
			return nil, fmt.Errorf("no condition %q; there are: %s", name, list(all, func(c condition.Condition) string { return c.Name }))
		}
	}
	return slices.DeleteFunc(all, func(c condition.Condition) bool {
		return c.Name != condition.Usual && !slices.Contains(wanted, c.Name)
	}), nil
}
