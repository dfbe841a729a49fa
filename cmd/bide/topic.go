// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/storage"
)

func (a *app) bind() *cobra.Command {
	return &cobra.Command{
		Use:     "bind TOPIC QUEUE...",
		Short:   "Let queues have what is published to a topic",
		Example: `  bide bind order.paid mail stock coupons`,
		Args:    cobra.MinimumNArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			return a.editTopic(c.Context(), args, (*bide.Client).Bind)
		},
	}
}

func (a *app) unbind() *cobra.Command {
	return &cobra.Command{
		Use:   "unbind TOPIC QUEUE...",
		Short: "Let queues have what is published to a topic no more",
		Args:  cobra.MinimumNArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			return a.editTopic(c.Context(), args, (*bide.Client).Unbind)
		},
	}
}

// bindings are those of a topic as JSON shows them.
type bindings struct {
	Topic  string   `json:"topic"`
	Queues []string `json:"queues"`
}

func (a *app) editTopic(
	ctx context.Context, args []string,
	edit func(c *bide.Client, ctx context.Context, topic string, queues ...string) ([]string, error),
) error {
	return a.with(ctx, func(client *bide.Client) error {
		queues, err := edit(client, ctx, args[0], args[1:]...)
		if err != nil {
			return err
		}
		return a.printTopic(args[0], queues)
	})
}

func (a *app) printTopic(topic string, queues []string) error {
	if a.json {
		return a.printJSON(bindings{topic, append([]string{}, queues...)})
	}
	told := strings.Join(queues, " ")
	if told == "" {
		told = "no queue"
	}
	_, err := fmt.Fprintf(a.out, "%s: %s\n", topic, told)
	return err
}

func (a *app) topics() *cobra.Command {
	return &cobra.Command{
		Use:   "topics",
		Short: "List the topics and the queues that are bound to them",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.with(c.Context(), func(client *bide.Client) error {
				for topic, err := range client.Topics(c.Context()) {
					if err != nil {
						return err
					}
					queues, err := client.Bindings(c.Context(), topic)
					if err != nil {
						return err
					}
					if err := a.printTopic(topic, queues); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
}

func (a *app) publish() *cobra.Command {
	var e enqueueing
	c := &cobra.Command{
		Use:   "publish TOPIC [BODY]",
		Short: "Enqueue a message into every queue that is bound to a topic",
		Long: `Enqueue a message into every queue that is bound to a topic, under one id, with BODY, or with
what is on standard input if BODY is - or left out.

If it fails in part, publish it again with --id and the id that was printed: the queues that have
it are left alone, for two minutes after the ack unless --dedup-for says otherwise.`,
		Example: `  bide publish order.paid '{"order": 42}' --id order-42`,
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(c *cobra.Command, args []string) error {
			if err := storage.CheckQueue(args[0]); err != nil {
				return err
			}
			if err := givenEmpty(c, "id", "key", "on-live"); err != nil {
				return err
			}
			m, err := e.read(a.in, args[1:])
			if err != nil {
				return err
			}
			return a.with(c.Context(), func(client *bide.Client) error {
				p, err := client.Publish(c.Context(), args[0], m)
				if told := a.printPublished(p, err); told != nil {
					return told
				}
				return err
			})
		},
	}
	e.messageFlags(c)
	return c
}

// publishedTo is a result as JSON shows it.
type publishedTo struct {
	Queue string `json:"queue"`
	enqueued
	Error string `json:"error,omitempty"`
}

func (a *app) printPublished(p bide.Published, failed error) error {
	if len(p.Queues) == 0 && failed == nil && !a.json {
		_, err := fmt.Fprintf(a.out, "%s reaches no queue: none is bound\n", p.ID)
		return err
	}
	for _, q := range p.Queues {
		to := publishedTo{Queue: q.Queue, enqueued: enqueuedAs(q.Result)}
		to.ID = p.ID
		line := q.Queue + ": " + to.String()
		if q.Err != nil {
			to.Error = q.Err.Error()
			line += ": " + strings.TrimPrefix(to.Error, "bide: ")
		}
		var err error
		if a.json {
			err = a.printJSON(to)
		} else {
			_, err = fmt.Fprintln(a.out, line)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
