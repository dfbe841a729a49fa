// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"iter"

	"github.com/spf13/cobra"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/storage"
)

// waiting is the name that the command line has for [bide.Waiting].
const waiting = "waiting"

// parseState reads a state, or waiting.
func parseState(name string) (storage.State, error) {
	if name == waiting {
		return bide.Waiting, nil
	}
	state, err := storage.ParseState(name)
	if err != nil {
		return 0, fmt.Errorf("%w, and not %s", err, waiting)
	}
	return state, nil
}

func stateName(s storage.State) string {
	if s == bide.Waiting {
		return waiting
	}
	return s.String()
}

// listing is what the flags say about how messages are listed.
type listing struct {
	desc, count bool
	last        int
}

func (l *listing) flags(c *cobra.Command) {
	f := c.Flags()
	f.BoolVar(&l.desc, "desc", false, "latest first")
	f.BoolVar(&l.count, "count", false, "print only how many there are; of those waiting unless --state says otherwise")
	f.IntVar(&l.last, "last", 0, "only so many from the end, in order; of those waiting unless --state says otherwise")
}

func (l *listing) check(c *cobra.Command) error {
	if err := exclusive(c, "count", "last", "limit"); err != nil {
		return err
	}
	if err := exclusive(c, "count", "desc"); err != nil {
		return err
	}
	if c.Flags().Changed("last") && l.last < 1 {
		return invalid("--last %d is below 1", l.last)
	}
	return nil
}

// exclusive refuses more than one of some flags.
func exclusive(c *cobra.Command, names ...string) error {
	first := ""
	for _, name := range names {
		switch {
		case !c.Flags().Changed(name):
		case first == "":
			first = name
		default:
			return invalid("--%s and --%s exclude each other", first, name)
		}
	}
	return nil
}

// messages are those that a filter selects, or the last of them.
func messages(ctx context.Context, client *bide.Client, queue string, f storage.Filter, last int) iter.Seq2[storage.Record, error] {
	if last == 0 {
		return client.Messages(ctx, queue, f)
	}
	return func(yield func(storage.Record, error) bool) {
		records, err := client.Last(ctx, queue, f, last)
		if err != nil {
			yield(storage.Record{}, err)
			return
		}
		for _, r := range records {
			if !yield(r, nil) {
				return
			}
		}
	}
}

func (a *app) countMessages(c *cobra.Command, client *bide.Client, queue string, filters []storage.Filter) error {
	var sum int64
	for _, f := range filters {
		n, err := client.Count(c.Context(), queue, f)
		if err != nil {
			return err
		}
		sum += n
	}
	if a.json {
		return a.printJSON(map[string]any{"queue": queue, "count": sum})
	}
	a.printf("%d\n", sum)
	return nil
}
