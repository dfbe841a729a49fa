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

func (a *app) redrive() *cobra.Command {
	var s selecting
	var all bool
	c := &cobra.Command{
		Use:   "redrive QUEUE [ID]",
		Short: "Make dead messages ready again",
		Args:  cobra.RangeArgs(1, 2),
		RunE: func(c *cobra.Command, args []string) error {
			f, err := s.filter(storage.Dead)
			if err != nil {
				return err
			}
			if all == (len(args) == 2) {
				return invalid("redrive needs an id, or --all")
			}
			if len(args) == 2 {
				if f.ID = args[1]; f.ID == "" {
					return invalid("the id is empty")
				}
			}
			if err := givenEmpty(c, "key", "from", "to"); err != nil {
				return err
			}
			return a.with(c.Context(), func(client *bide.Client) error {
				b, err := client.Redrive(c.Context(), args[0], f)
				if err != nil {
					return err
				}
				if a.json {
					return a.printJSON(map[string]int{"redriven": b.Count, "skipped": b.Skipped})
				}
				a.printf("%d redriven, %d skipped because their ids are live\n", b.Count, b.Skipped)
				return nil
			})
		},
	}
	s.flags(c, 0, "messages at most, 0 is all")
	c.Flags().BoolVar(&all, "all", false, "every dead message that the other flags select")
	return c
}

func (a *app) purge() *cobra.Command {
	var s selecting
	var name, id string
	var yes bool
	c := &cobra.Command{
		Use:   "purge QUEUE",
		Short: "Remove waiting or dead messages",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			state, err := storage.ParseState(name)
			if err != nil {
				return err
			}
			f, err := s.filter(state)
			if err != nil {
				return err
			}
			f.ID = id
			if err := givenEmpty(c, "id", "key", "from", "to"); err != nil {
				return err
			}
			return a.with(c.Context(), func(client *bide.Client) error {
				if !yes {
					if err := a.confirm(c, client, args[0], state); err != nil {
						return err
					}
				}
				b, err := client.Purge(c.Context(), args[0], f)
				if err != nil {
					return err
				}
				if id != "" && b.Count == 0 {
					return fmt.Errorf("%w: no %s message %q", bide.ErrNotFound, state, id)
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
	c.Flags().StringVar(&name, "state", "dead", "delayed, ready or dead")
	c.Flags().StringVar(&id, "id", "", "only this id")
	completeStates(c, storage.Delayed, storage.Ready, storage.Dead)
	c.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return c
}

// confirm asks on the terminal before messages are removed.
func (a *app) confirm(c *cobra.Command, client *bide.Client, queue string, state storage.State) error {
	st, err := client.Stats(c.Context(), queue)
	if err != nil {
		return err
	}
	n := map[storage.State]int64{storage.Delayed: st.Delayed, storage.Ready: st.Ready, storage.Dead: st.Dead}[state]
	fmt.Fprintf(a.err, "Remove what is selected of the %d %s messages of %s? [y/N] ", n, state, queue)
	answer, err := bufio.NewReader(a.in).ReadString('\n')
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer == "y" || answer == "yes" {
		return nil
	}
	if err != nil && answer == "" {
		return invalid("nobody answered; --yes does not ask")
	}
	return errors.New("nothing was purged")
}
