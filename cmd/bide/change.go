// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/storage"
)

func (a *app) cancel() *cobra.Command {
	var running bool
	c := &cobra.Command{
		Use:   "cancel QUEUE ID",
		Short: "Remove a message before it is handled",
		Args:  cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			return a.with(c.Context(), func(client *bide.Client) error {
				var mode []bide.CancelMode
				if running {
					mode = append(mode, bide.Running)
				}
				if err := client.Cancel(c.Context(), args[0], args[1], mode...); err != nil {
					return err
				}
				if a.json {
					return a.printJSON(map[string]any{"id": args[1], "canceled": true})
				}
				a.printf("%s canceled\n", args[1])
				return nil
			})
		},
	}
	c.Flags().BoolVar(&running, "running", false, "also if a handler has it: its lease is taken away")
	return c
}

func (a *app) reschedule() *cobra.Command {
	var w when
	c := &cobra.Command{
		Use:     "reschedule QUEUE ID",
		Short:   "Change when a waiting message is due",
		Example: "  bide reschedule order.timeout order-42 --in 1h",
		Args:    cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			e, err := w.edit(c)
			if err != nil {
				return err
			}
			if e.Due == nil && e.Delay == nil {
				return invalid("reschedule needs --in or --at")
			}
			return a.change(c, args[0], args[1], e)
		},
	}
	w.flags(c)
	return c
}

// edit is the change that --in or --at asks for, none if neither was given.
func (w *when) edit(c *cobra.Command) (storage.Edit, error) {
	var e storage.Edit
	due, err := w.due()
	if err != nil {
		return e, err
	}
	if !due.IsZero() {
		e.Due = &due
	}
	if c.Flags().Changed("in") {
		e.Delay = &w.in
	}
	return e, nil
}

func (a *app) edit() *cobra.Command {
	var w when
	var body string
	var priority int
	var headers []string
	c := &cobra.Command{
		Use:   "edit QUEUE ID",
		Short: "Change a waiting message in place",
		Args:  cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			e, err := w.edit(c)
			if err != nil {
				return err
			}
			if c.Flags().Changed("body") {
				e.Body = new([]byte(body))
			}
			if body == "-" {
				data, err := io.ReadAll(a.in)
				if err != nil {
					return err
				}
				e.Body = &data
			}
			if c.Flags().Changed("priority") {
				e.Priority = &priority
			}
			if c.Flags().Changed("header") {
				h, err := parseHeaders(headers)
				if err != nil {
					return err
				}
				e.Headers = &h
			}
			if e == (storage.Edit{}) {
				return invalid("edit needs at least one of --body, --priority, --header, --in, --at")
			}
			return a.change(c, args[0], args[1], e)
		},
	}
	w.flags(c)
	c.Flags().StringVar(&body, "body", "", "the new body, - is standard input")
	c.Flags().IntVar(&priority, "priority", 0, "0 to 9, 9 goes first")
	c.Flags().StringArrayVar(&headers, "header", nil, "NAME=VALUE, may be repeated; these replace all headers")
	return c
}

func (a *app) change(c *cobra.Command, queue, id string, e storage.Edit) error {
	return a.with(c.Context(), func(client *bide.Client) error {
		r, err := client.Edit(c.Context(), queue, id, e)
		if err != nil {
			return err
		}
		if a.json {
			return a.printJSON(show(r))
		}
		a.printf("%s is due %s\n", r.ID, stamp(r.Due))
		return nil
	})
}
