// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/storage"
)

// selecting is what the flags say that choose messages.
type selecting struct {
	key, from, to string
	limit         int
}

func (s *selecting) flags(c *cobra.Command, limit int, what string) {
	f := c.Flags()
	f.StringVar(&s.key, "key", "", "only messages of this key")
	f.StringVar(&s.from, "from", "", "only messages due, leased until or finished at this instant or later")
	f.StringVar(&s.to, "to", "", "only messages due, leased until or finished before this instant")
	f.IntVar(&s.limit, "limit", limit, what)
}

func (s *selecting) filter(state storage.State) (storage.Filter, error) {
	f := storage.Filter{State: state, Key: s.key, Limit: s.limit}
	if s.limit < 0 {
		return f, invalid("limit %d is negative", s.limit)
	}
	var err error
	if s.from != "" {
		if f.From, err = parseInstant(s.from); err != nil {
			return f, err
		}
	}
	if s.to != "" {
		f.To, err = parseInstant(s.to)
	}
	return f, err
}

func (a *app) ls() *cobra.Command {
	var s selecting
	var states []string
	var l listing
	c := &cobra.Command{
		Use:   "ls QUEUE",
		Short: "List or count the messages of a queue",
		Example: "  bide ls order.timeout --state delayed --to 2026-01-31\n" +
			"  bide ls order.timeout --count --from '2026-01-31 09:00' --to '2026-01-31 10:00'\n" +
			"  bide ls events --last 10",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := l.check(c); err != nil {
				return err
			}
			if len(states) == 0 {
				return invalid("--state is empty")
			}
			if (l.count || l.last > 0) && !c.Flags().Changed("state") {
				states = []string{waiting}
			}
			if err := givenEmpty(c, "key", "from", "to"); err != nil {
				return err
			}
			filters := make([]storage.Filter, len(states))
			for i, name := range states {
				state, err := parseState(name)
				if err != nil {
					return err
				}
				if filters[i], err = s.filter(state); err != nil {
					return err
				}
				filters[i].Desc = l.desc
				if l.count || l.last > 0 {
					filters[i].Limit = 0
				}
			}
			return a.with(c.Context(), func(client *bide.Client) error {
				if l.count {
					return a.countMessages(c, client, args[0], filters)
				}
				return a.list(c, client, args[0], filters, l.last)
			})
		},
	}
	s.flags(c, 50, "messages of each state at most, 0 is all")
	c.Flags().StringSliceVar(&states, "state", []string{"leased", "ready", "delayed", "dead"},
		"which states, in this order, of delayed, ready, leased, dead and done; waiting is ready and delayed together, by due time")
	l.flags(c)
	completeStates(c, storage.Delayed, storage.Ready, storage.Leased, storage.Dead, storage.Done)
	return c
}

func (a *app) list(c *cobra.Command, client *bide.Client, queue string, filters []storage.Filter, last int) error {
	st, err := client.Stats(c.Context(), queue)
	if err != nil {
		return err
	}
	dead := len(filters) == 1 && filters[0].State == storage.Dead
	var t *table
	for _, f := range filters {
		for r, err := range messages(c.Context(), client, queue, f, last) {
			if err != nil {
				return err
			}
			if a.json {
				if err := a.printJSON(show(r)); err != nil {
					return err
				}
				continue
			}
			if t == nil {
				fourth := "PRIORITY"
				if dead {
					fourth = "REASON"
				}
				t = a.table("ID", "STATE", "WHEN", fourth, "ATTEMPTS", "KEY", "BODY")
			}
			attempts := fmt.Sprint(r.Attempts)
			if r.MaxAttempts > 0 {
				attempts += fmt.Sprintf("/%d", r.MaxAttempts)
			}
			fourth := fmt.Sprint(r.Priority)
			if dead {
				fourth = preview([]byte(r.Reason), 40)
			}
			t.row(plain(r.ID), r.State.String(), relative(r.At(), st.Now), fourth, attempts, plain(r.Key), preview(r.Body, 40))
		}
	}
	if t == nil {
		a.printf("no messages\n")
		return nil
	}
	return t.end()
}

func (a *app) get() *cobra.Command {
	var body bool
	c := &cobra.Command{
		Use:   "get QUEUE ID",
		Short: "Show one message",
		Args:  cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			if body && a.json {
				return invalid("--body and --json exclude each other")
			}
			return a.with(c.Context(), func(client *bide.Client) error {
				r, err := client.Get(c.Context(), args[0], args[1])
				switch {
				case err != nil:
					return err
				case body:
					_, err := a.out.Write(r.Body)
					return err
				case a.json:
					return a.printJSON(show(r))
				}
				return a.describe(r)
			})
		},
	}
	c.Flags().BoolVar(&body, "body", false, "print the body alone, as it is")
	return c
}

// describe prints a record for a person, without what it does not have.
func (a *app) describe(r storage.Record) error {
	t := &table{a.table("id", plain(r.ID)).w}
	field := func(name, value string) {
		if value != "" {
			t.row(name, value)
		}
	}
	field("state", r.State.String())
	field("due", stamp(r.Due))
	field("enqueued", stamp(r.Enqueued))
	field("key", plain(r.Key))
	field("priority", fmt.Sprint(r.Priority))
	limit := "no limit"
	if r.MaxAttempts > 0 {
		limit = fmt.Sprintf("of %d", r.MaxAttempts)
	}
	field("attempts", fmt.Sprintf("%d (%s), %d deliveries", r.Attempts, limit, r.Deliveries))
	field("expires", stamp(r.Expires()))
	field("dedup for", span(r.DedupFor))
	if r.State == storage.Leased {
		field("leased by", fmt.Sprintf("%s until %s, token %d", r.Lease.By, stamp(r.Lease.Until), r.Lease.Token))
	}
	field("finished", stamp(r.Finished))
	field("reason", preview([]byte(r.Reason), 200))
	for _, h := range r.History {
		field(fmt.Sprintf("delivery %d", h.Delivery), fmt.Sprintf("%s by %s: %s", stamp(h.Ended), plain(h.By), preview([]byte(h.Reason), 200)))
	}
	if r.Untold {
		field("told", "not yet")
	}
	if r.Successor {
		field("successor", "runs after this one")
	}
	for _, name := range slices.Sorted(maps.Keys(r.Headers)) {
		field("header "+plain(name), preview([]byte(r.Headers[name]), 200))
	}
	field("body", strings.TrimSpace(preview(r.Body, 2000)))
	return t.end()
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format("2006-01-02 15:04:05.000")
}
