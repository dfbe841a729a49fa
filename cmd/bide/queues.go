// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/storage"
)

func (a *app) queues() *cobra.Command {
	return &cobra.Command{
		Use:   "queues",
		Short: "List the queues",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.with(c.Context(), func(client *bide.Client) error {
				for name, err := range client.Queues(c.Context()) {
					if err != nil {
						return err
					}
					if a.json {
						err = a.printJSON(map[string]string{"queue": name})
					} else {
						_, err = fmt.Fprintln(a.out, name)
					}
					if err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
}

// counted is the stats of a queue as JSON shows them.
type counted struct {
	Queue         string           `json:"queue"`
	Now           time.Time        `json:"now"`
	Paused        bool             `json:"paused"`
	ExpireIn      string           `json:"expire_in,omitempty"`
	MaxDeliveries int              `json:"max_deliveries,omitempty"`
	Delayed       int64            `json:"delayed"`
	Ready         int64            `json:"ready"`
	Leased        int64            `json:"leased"`
	Dead          int64            `json:"dead"`
	Done          int64            `json:"done"`
	Keys          int64            `json:"keys"` // groups that have a message waiting or running
	NextDue       *time.Time       `json:"next_due,omitempty"`
	Total         map[string]int64 `json:"total"`
}

func count(queue string, st storage.Stats) counted {
	n := st.Total
	c := counted{
		Queue: queue, Now: st.Now, Paused: st.Config.Paused, ExpireIn: span(st.Config.ExpireIn), MaxDeliveries: st.Config.MaxDeliveries,
		Delayed: st.Delayed, Ready: st.Ready, Leased: st.Leased, Dead: st.Dead, Done: st.Done, Keys: st.Keys,
		Total: map[string]int64{
			"enqueued": n.Enqueued, "duplicates": n.Duplicates, "replaced": n.Replaced, "reruns": n.Reruns, "claimed": n.Claimed,
			"acked": n.Acked, "retried": n.Retried, "released": n.Released, "lapsed": n.Lapsed, "died": n.Died, "redriven": n.Redriven,
			"expired": n.Expired, "canceled": n.Canceled, "purged": n.Purged, "wakeups": n.Wakeups, "empty_claims": n.EmptyClaims,
			"clock_steps": n.ClockSteps, "dropped": n.Dropped, "retained": n.Retained, "trimmed": n.Trimmed,
		},
	}
	if !st.NextDue.IsZero() {
		c.NextDue = &st.NextDue
	}
	return c
}

func (a *app) stats() *cobra.Command {
	return &cobra.Command{
		Use:   "stats [QUEUE...]",
		Short: "Count messages by state, of all queues or some",
		RunE: func(c *cobra.Command, names []string) error {
			return a.with(c.Context(), func(client *bide.Client) error {
				if len(names) == 0 {
					for name, err := range client.Queues(c.Context()) {
						if err != nil {
							return err
						}
						names = append(names, name)
					}
				}
				slices.Sort(names)
				return a.showStats(c, client, slices.Compact(names))
			})
		},
	}
}

func (a *app) showStats(c *cobra.Command, client *bide.Client, names []string) error {
	var t *table
	if !a.json {
		t = a.table("QUEUE", "DELAYED", "READY", "LEASED", "DEAD", "DONE", "NEXT DUE", "ENQUEUED", "ACKED", "RETRIED", "EXPIRED", "DROPPED")
	}
	for _, name := range names {
		st, err := client.Stats(c.Context(), name)
		if err != nil {
			return err
		}
		if a.json {
			if err := a.printJSON(count(name, st)); err != nil {
				return err
			}
			continue
		}
		if st.Config.Paused {
			name += " (paused)"
		}
		cells := []string{name}
		for _, n := range []int64{st.Delayed, st.Ready, st.Leased, st.Dead, st.Done} {
			cells = append(cells, fmt.Sprint(n))
		}
		cells = append(cells, relative(st.NextDue, st.Now))
		for _, n := range []int64{st.Total.Enqueued, st.Total.Acked, st.Total.Retried, st.Total.Expired, st.Total.Dropped} {
			cells = append(cells, fmt.Sprint(n))
		}
		t.row(cells...)
	}
	if t == nil {
		return nil
	}
	return t.end()
}

func (a *app) repair() *cobra.Command {
	var dryRun bool
	c := &cobra.Command{
		Use:   "repair QUEUE",
		Short: "Compare the structures of a queue with its messages and mend them",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return a.with(c.Context(), func(client *bide.Client) error {
				r, err := client.Repair(c.Context(), args[0], storage.Repair{DryRun: dryRun})
				if err != nil {
					return err
				}
				fixes := map[string]int{}
				for _, f := range r.Fixes {
					fixes[f.What] += f.Count
				}
				if a.json {
					return a.printJSON(map[string]any{"queue": args[0], "checked": r.Checked, "fixes": fixes, "dry_run": dryRun})
				}
				a.printf("%d entries checked\n", r.Checked)
				for _, what := range slices.Sorted(maps.Keys(fixes)) {
					a.printf("%s: %d\n", what, fixes[what])
				}
				return nil
			})
		},
	}
	c.Flags().BoolVar(&dryRun, "dry-run", false, "say what is wrong and change nothing")
	return c
}
