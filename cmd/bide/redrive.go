// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/storage"
)

// redriving is what the command line says about a redrive.
type redriving struct {
	selecting
	all  bool
	rate string
}

func (a *app) redrive() *cobra.Command {
	var r redriving
	c := &cobra.Command{
		Use:   "redrive QUEUE [ID...]",
		Short: "Make dead messages ready again",
		Long: "Make dead messages ready again: those named, or with --all those that the flags select.\n" +
			"An interrupt stops it between two steps; the same command goes on with what is still dead.",
		Example: "  bide redrive order.timeout order-42\n" +
			"  bide redrive order.timeout --all --from '2026-01-31 09:00' --rate 100/s",
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			f, config, err := r.read(c, args[1:])
			if err != nil {
				return err
			}
			ctx, stop := untilInterrupted(c.Context(), func() {})
			defer stop()
			return a.with(ctx, func(client *bide.Client) error {
				if !r.all {
					return a.redriveNamed(ctx, client, args[0], args[1:], f)
				}
				return a.redriveAll(ctx, client, args[0], f, config)
			})
		},
	}
	r.flags(c, 0, "messages at most, 0 is all")
	c.Flags().BoolVar(&r.all, "all", false, "every dead message that the other flags select")
	c.Flags().StringVar(&r.rate, "rate", "", "no faster than this, 100/s, 30/m or 5/h; 100 is 100/s")
	return c
}

func (r *redriving) read(c *cobra.Command, ids []string) (f storage.Filter, config bide.RedriveConfig, err error) {
	if f, err = r.filter(storage.Dead); err != nil {
		return f, config, err
	}
	if r.all == (len(ids) > 0) {
		return f, config, invalid("redrive needs an id, or --all")
	}
	if slices.Contains(ids, "") {
		return f, config, invalid("the id is empty")
	}
	if err := givenEmpty(c, "key", "from", "to", "rate"); err != nil {
		return f, config, err
	}
	if len(ids) > 0 {
		for _, name := range []string{"rate", "limit"} {
			if c.Flags().Changed(name) {
				return f, config, invalid("--%s goes with --all", name)
			}
		}
	}
	if r.rate != "" {
		config.PerSecond, err = parseRate(r.rate)
	}
	return f, config, err
}

// redriveNamed stops at the first id that cannot be redriven.
func (a *app) redriveNamed(ctx context.Context, client *bide.Client, queue string, ids []string, f storage.Filter) error {
	n := 0
	for _, id := range ids {
		f.ID = id
		b, err := client.Redrive(ctx, queue, f)
		if n += b.Count; err != nil {
			return partly(err, n, "redriven")
		}
	}
	return a.redriven(storage.Batch{Count: n})
}

// redriveAll shows how far it is if that may take a while.
func (a *app) redriveAll(ctx context.Context, client *bide.Client, queue string, f storage.Filter, config bide.RedriveConfig) error {
	if config.PerSecond > 0 {
		st, err := client.Stats(ctx, queue)
		if err != nil {
			return err
		}
		total := int(st.Dead)
		if f.Limit > 0 {
			total = min(total, f.Limit)
		}
		p := a.newProgress("redriven", total)
		defer p.end()
		config.Progress = func(b storage.Batch) { p.set(b.Count) }
	}
	b, err := client.RedriveWith(ctx, queue, f, config)
	if err != nil {
		return partly(err, b.Count, "redriven")
	}
	return a.redriven(b)
}

func (a *app) redriven(b storage.Batch) error {
	if a.json {
		return a.printJSON(map[string]int{"redriven": b.Count, "skipped": b.Skipped})
	}
	a.printf("%d redriven, %d skipped because their ids are live\n", b.Count, b.Skipped)
	return nil
}

// parseRate reads so many a second, minute or hour, and returns how many that is a second.
func parseRate(s string) (float64, error) {
	number, unit, found := strings.Cut(s, "/")
	per := map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour}[unit]
	if !found {
		per = time.Second
	}
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || per == 0 || !(n > 0) {
		return 0, fmt.Errorf("%w: rate %q is not like 100/s, 30/m or 5/h, and above zero", bide.ErrInvalid, s)
	}
	return n / per.Seconds(), nil
}
