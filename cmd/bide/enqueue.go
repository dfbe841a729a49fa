// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/storage"
)

// enqueueing is what the flags of enqueue say.
type enqueueing struct {
	when
	message bide.Message
	headers []string
	replace bool
	rerun   bool
	onLive  string
	lines   string
}

func (a *app) enqueue() *cobra.Command {
	var e enqueueing
	c := &cobra.Command{
		Use:   "enqueue QUEUE [BODY]",
		Short: "Enqueue a message, or one for each line of JSON",
		Long: `Enqueue a message with BODY, or with what is on standard input if BODY is - or left out.

With --lines FILE (- is standard input) every line is a JSON object and makes a message:
  {"body": {"order": 42}, "id": "order-42", "in": "30m"}
Its fields are body (any JSON), or text, or base64; id, in, due, key, priority, headers,
expire_in, max_attempts, dedup_for, on_live (keep, replace or rerun). A line that is refused is
reported with its number, and the others are enqueued.`,
		Example: `  bide enqueue order.timeout '{"order": 42}' --id order-42 --in 30m
  bide enqueue mail --lines mails.jsonl`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(c *cobra.Command, args []string) error {
			if err := storage.CheckQueue(args[0]); err != nil {
				return err
			}
			if err := givenEmpty(c, "id", "key", "on-live"); err != nil {
				return err
			}
			if c.Flags().Changed("lines") {
				if len(args) == 2 || beside(c, "lines") {
					return invalid("--lines takes everything from the lines, no body and no other flags of the message")
				}
				return a.with(c.Context(), func(client *bide.Client) error {
					return a.enqueueLines(c.Context(), client, args[0], e.lines)
				})
			}
			m, err := e.read(a.in, args[1:])
			if err != nil {
				return err
			}
			return a.with(c.Context(), func(client *bide.Client) error {
				return a.enqueueOne(c.Context(), client, args[0], m)
			})
		},
	}
	e.messageFlags(c)
	c.Flags().StringVar(&e.lines, "lines", "", "file of JSON lines to enqueue, - is standard input")
	return c
}

// messageFlags are those that say what the message is.
func (e *enqueueing) messageFlags(c *cobra.Command) {
	e.flags(c)
	f := c.Flags()
	f.StringVar(&e.message.ID, "id", "", "name of the message; enqueueing it again while it lives changes nothing")
	f.StringVar(&e.message.Key, "key", "", "group that the message belongs to")
	f.IntVar(&e.message.Priority, "priority", 0, "0 to 9, 9 goes first")
	f.IntVar(&e.message.MaxAttempts, "max-attempts", 0, fmt.Sprintf("attempts before it is dead, -1 is no limit (default %d)", bide.DefaultMaxAttempts))
	f.DurationVar(&e.message.ExpireIn, "expire-in", 0, "drop it when it was not handed out this long after its due time")
	f.DurationVar(&e.message.DedupFor, "dedup-for", 0, "keep its id taken for this long after the ack")
	f.StringArrayVar(&e.headers, "header", nil, "NAME=VALUE, may be repeated")
	f.BoolVar(&e.replace, "replace", false, "take the place of a waiting message of the same id")
	f.BoolVar(&e.rerun, "rerun", false, "run again after a running message of the same id")
	f.StringVar(&e.onLive, "on-live", "", "what a waiting or running message of the same id means: keep it, replace or rerun (default keep)")
}

// givenEmpty refuses flags that were given and are empty: an empty variable of a shell is no wish for
// everything, or for a made-up id.
func givenEmpty(c *cobra.Command, names ...string) error {
	for _, name := range names {
		if f := c.Flags().Lookup(name); f != nil && f.Changed && f.Value.String() == "" {
			return invalid("--%s is empty", name)
		}
	}
	return nil
}

// beside says whether a flag of the message was given beside the named one.
func beside(c *cobra.Command, name string) (found bool) {
	c.Flags().Visit(func(f *pflag.Flag) {
		found = found || f.Name != name && f.Name != "store" && f.Name != "json"
	})
	return found
}

// read makes the message that the flags and arguments say.
func (e *enqueueing) read(in io.Reader, body []string) (bide.Message, error) {
	m := e.message
	var err error
	if m.Due, err = e.due(); err != nil {
		return m, err
	}
	m.Delay = e.in
	if len(e.headers) > 0 {
		if m.Headers, err = parseHeaders(e.headers); err != nil {
			return m, err
		}
	}
	if m.OnLive, err = e.meaning(); err != nil {
		return m, err
	}
	if len(body) == 1 && body[0] != "-" {
		m.Body = []byte(body[0])
		return m, nil
	}
	m.Body, err = io.ReadAll(in)
	return m, err
}

// meaning is what the flags say about a message of the same id.
func (e *enqueueing) meaning() (storage.OnLive, error) {
	var names []string
	if e.replace {
		names = append(names, storage.Replace.String())
	}
	if e.rerun {
		names = append(names, storage.Rerun.String())
	}
	if e.onLive != "" {
		names = append(names, e.onLive)
	}
	switch len(names) {
	case 0:
		return storage.Keep, nil
	case 1:
		return parseOnLive(names[0])
	}
	return 0, invalid("--replace, --rerun and --on-live exclude each other")
}

func parseOnLive(name string) (storage.OnLive, error) {
	for _, o := range []storage.OnLive{storage.Keep, storage.Replace, storage.Rerun} {
		if name == o.String() {
			return o, nil
		}
	}
	return 0, invalid("on-live: %q is not keep, replace or rerun", name)
}

func parseHeaders(pairs []string) (map[string]string, error) {
	headers := map[string]string{}
	for _, pair := range pairs {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return nil, invalid("header %q is not NAME=VALUE", pair)
		}
		if _, twice := headers[name]; twice {
			return nil, invalid("header %q is given twice", name)
		}
		headers[name] = value
	}
	return headers, nil
}

// enqueued is a result as JSON shows it.
type enqueued struct {
	ID      string     `json:"id"`
	Outcome string     `json:"outcome"`
	Due     *time.Time `json:"due,omitempty"`
	Dropped []string   `json:"dropped,omitempty"` // ids of what made room for it
}

func (a *app) enqueueOne(ctx context.Context, client *bide.Client, queue string, m bide.Message) error {
	r, err := client.Enqueue(ctx, queue, m)
	if err != nil {
		return err
	}
	e := enqueuedAs(r)
	if a.json {
		return a.printJSON(e)
	}
	_, err = fmt.Fprintln(a.out, e)
	return err
}

func enqueuedAs(r bide.Result) enqueued {
	e := enqueued{ID: r.ID, Outcome: r.Outcome.String(), Dropped: r.Dropped}
	if !r.Due.IsZero() {
		e.Due = &r.Due
	}
	return e
}

// String is a result as a line shows it.
func (e enqueued) String() string {
	line := e.ID + " " + e.Outcome
	if e.Due != nil {
		line += ", due " + e.Due.Local().Format("2006-01-02 15:04:05.000")
	}
	if len(e.Dropped) > 0 {
		line += "; dropped " + strings.Join(e.Dropped, " ")
	}
	return line
}
