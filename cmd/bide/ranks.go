// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/storage"
)

// ranks are places in a listing.
type ranks struct {
	given       bool
	desc        bool // counted from the end
	first, last int
}

// chosenRanks reads --ranks and --last, which exclude each other, --limit and --id.
func chosenRanks(c *cobra.Command, span string, last int) (ranks, error) {
	if err := exclusive(c, "ranks", "last", "limit", "id"); err != nil {
		return ranks{}, err
	}
	switch {
	case c.Flags().Changed("last") && last < 1:
		return ranks{}, invalid("--last %d is below 1", last)
	case last > 0:
		return ranks{given: true, desc: true, last: last - 1}, nil
	case span != "":
		return parseRanks(span)
	}
	return ranks{}, nil
}

// parseRanks reads A-B, or one rank alone.
func parseRanks(s string) (ranks, error) {
	from, to, span := strings.Cut(s, "-")
	if !span {
		to = from
	}
	first, err := strconv.ParseUint(from, 10, 31)
	if err == nil {
		var last uint64
		if last, err = strconv.ParseUint(to, 10, 31); err == nil && first <= last {
			return ranks{given: true, first: int(first), last: int(last)}, nil
		}
	}
	return ranks{}, invalid("ranks %q are not like 0-99, from the first place, which is 0, to the last", s)
}

func (r ranks) purge(ctx context.Context, client *bide.Client, queue string, f storage.Filter) (storage.Batch, error) {
	if !r.given {
		return client.Purge(ctx, queue, f)
	}
	f.Desc = r.desc
	return client.PurgeRanks(ctx, queue, f, r.first, r.last)
}

// partly tells what was done beside why the rest was not.
func partly(err error, n int, done string) error {
	if n == 0 {
		return err
	}
	return fmt.Errorf("%d %s, and then: %w", n, done, err)
}
