// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/storage"
)

func (a *app) purge() *cobra.Command {
	var s selecting
	var name, id, ranks string
	var last int
	var yes bool
	c := &cobra.Command{
		Use:   "purge QUEUE",
		Short: "Remove waiting, dead or done messages",
		Example: "  bide purge order.timeout --state waiting --from '2026-01-31 09:00' --to '2026-01-31 10:00'\n" +
			"  bide purge order.timeout --state waiting --ranks 0-99",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			state, err := parseState(name)
			if err != nil {
				return err
			}
			f, err := s.filter(state)
			if err != nil {
				return err
			}
			f.ID = id
			if err := givenEmpty(c, "id", "key", "from", "to", "ranks"); err != nil {
				return err
			}
			span, err := chosenRanks(c, ranks, last)
			if err != nil {
				return err
			}
			return a.with(c.Context(), func(client *bide.Client) error {
				if !yes {
					if err := a.confirm(c, client, args[0], state); err != nil {
						return err
					}
				}
				b, err := span.purge(c.Context(), client, args[0], f)
				if err != nil {
					return partly(err, b.Count, "purged")
				}
				if id != "" && b.Count == 0 {
					return fmt.Errorf("%w: no %s message %q", bide.ErrNotFound, stateName(state), id)
				}
				if a.json {
					return a.printJSON(map[string]int{"purged": b.Count})
				}
				a.printf("%d purged\n", b.Count)
				return nil
			})
		},
	}
	s.flags(c, 0, "messages at most, 0 is all")
	c.Flags().StringVar(&name, "state", "dead", "delayed, ready, dead or done; waiting is ready and delayed together, by due time")
	c.Flags().StringVar(&id, "id", "", "only this id")
	c.Flags().StringVar(&ranks, "ranks", "", "only those from one place to another in the order of the listing, 0-99 is the first hundred")
	c.Flags().IntVar(&last, "last", 0, "only so many from the end")
	completeStates(c, storage.Delayed, storage.Ready, storage.Dead, storage.Done)
	c.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return c
}

// confirm asks on the terminal before messages are removed.
func (a *app) confirm(c *cobra.Command, client *bide.Client, queue string, state storage.State) error {
	n, err := client.Count(c.Context(), queue, storage.Filter{State: state})
	if err != nil {
		return err
	}
	fmt.Fprintf(a.err, "Remove what is selected of the %d %s messages of %s? [y/N] ", n, stateName(state), queue)
	answer, err := bufio.NewReader(a.in).ReadString('\n')
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer == "y" || answer == "yes" {
		return nil
	}
	if err != nil && answer == "" {
		return invalid("nobody answered; --yes does not ask")
	}
	return errors.New("nothing was purged")
}
