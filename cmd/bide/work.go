// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"os/exec"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/storage"
)

// working is what the flags of work say.
type working struct {
	concurrency int
	lease       time.Duration
	timeout     time.Duration
	drain       time.Duration
	snooze      time.Duration
	retryFirst  time.Duration
	retryMost   time.Duration
	untilEmpty  bool
	keys        []string
	except      []string
	batch       int
	command     []string
}

func (a *app) work() *cobra.Command {
	var w working
	c := &cobra.Command{
		Use:   "work QUEUE... [-- COMMAND ARG...]",
		Short: "Handle messages: run a command for each, or print them",
		Long: `Handle the messages of one or more queues until interrupted.

COMMAND gets the body on its standard input and BIDE_QUEUE, BIDE_ID, BIDE_ATTEMPT,
BIDE_MAX_ATTEMPTS, BIDE_DELIVERIES, BIDE_TOKEN, BIDE_KEY and BIDE_DUE in its environment, headers as
BIDE_HEADER_NAME. If it exits with 0 the message is acknowledged, with 75 it is put off and no
attempt is spent, with anything else the attempt failed and is retried. BIDE_MAX_ATTEMPTS is 0 where
there is no limit. Without a command the messages are printed and acknowledged.

With --batch COMMAND gets up to so many messages of one key at once, or of those without a key: on
its standard input a line of JSON for each, as ls --json has it, and in its environment BIDE_QUEUE,
BIDE_KEY and BIDE_COUNT. What it exits with counts for all of them.

--keys and --except choose messages by their keys, so that a hot key can have a process of its own.
The key '' stands for messages without one.

The first interrupt stops taking messages and waits for the commands that run; the second one kills
them. What a command leaves running in the background goes on.`,
		Example: "  bide work mail -- ./send-mail.sh\n" +
			"  bide work events --except hot-game --batch 128 -- ./report.sh",
		RunE: func(c *cobra.Command, args []string) error {
			queues := args
			if at := c.ArgsLenAtDash(); at >= 0 {
				queues, w.command = args[:at], args[at:]
				if len(w.command) == 0 {
					return invalid("there is no command behind --")
				}
			}
			if len(queues) == 0 {
				return invalid("work needs a queue; usage: %s", c.UseLine())
			}
			w.keys, w.except = withoutKey(c, "keys", w.keys), withoutKey(c, "except", w.except)
			if err := w.check(queues); err != nil {
				return err
			}
			return a.with(c.Context(), func(client *bide.Client) error { return a.handle(c.Context(), client, queues, w) })
		},
	}
	f := c.Flags()
	f.IntVarP(&w.concurrency, "concurrency", "c", 4, "messages handled at once")
	f.DurationVar(&w.lease, "lease", 30*time.Second, "how soon messages of a consumer that has vanished come back")
	f.DurationVar(&w.timeout, "timeout", 0, "end a command after this long, 0 is never")
	f.DurationVar(&w.drain, "drain", 30*time.Second, "wait this long for commands when interrupted, before they are ended")
	f.DurationVar(&w.snooze, "snooze", 10*time.Second, "when a command exits with 75, try again after this")
	f.DurationVar(&w.retryFirst, "retry", 5*time.Second, "first wait after a failure; it doubles with each attempt")
	f.DurationVar(&w.retryMost, "retry-most", 6*time.Hour, "longest wait after a failure")
	f.BoolVar(&w.untilEmpty, "until-empty", false, "end when the queues hold nothing that waits or runs; what waits in a paused queue does not count")
	f.StringSliceVar(&w.keys, "keys", nil, "only messages of these keys, with commas between them")
	f.StringSliceVar(&w.except, "except", nil, "no messages of these keys")
	f.IntVar(&w.batch, "batch", 0, "messages of one key that a command gets at once, at most; 0 is each alone")
	return c
}

// withoutKey reads ” as the key of messages that have none.
func withoutKey(c *cobra.Command, name string, keys []string) []string {
	if c.Flags().Changed(name) && len(keys) == 0 {
		return []string{""}
	}
	return keys
}

// scope is what is asked for of a queue.
func (w *working) scope(queue string) storage.Scope {
	return storage.Scope{Queue: queue, Keys: w.keys, Except: w.except}
}

func (w *working) check(queues []string) error {
	for i, queue := range queues {
		scope := w.scope(queue)
		if err := scope.Check(); err != nil {
			return err
		}
		if slices.Contains(queues[:i], queue) {
			return invalid("queue %q is named twice", queue)
		}
	}
	if len(w.command) > 0 {
		if _, err := exec.LookPath(w.command[0]); err != nil {
			return invalid("%v", err)
		}
	}
	switch {
	case w.concurrency < 1 || w.concurrency > 10_000:
		return invalid("concurrency %d is not between 1 and 10000", w.concurrency)
	case w.lease < time.Second || w.lease > 24*time.Hour:
		return invalid("lease %s is not between 1s and 24h", w.lease)
	case w.timeout < 0 || w.drain < 0 || w.snooze < 0 || w.retryFirst < 0 || w.retryMost < 0:
		return invalid("a duration is negative")
	case w.batch < 0 || w.batch > storage.MaxBatch:
		return invalid("batch %d is not between 0 and %d", w.batch, storage.MaxBatch)
	case w.untilEmpty && len(w.keys)+len(w.except) > 0:
		return invalid("--until-empty looks at whole queues, and goes with neither --keys nor --except")
	}
	return nil
}

func (a *app) handle(ctx context.Context, client *bide.Client, queues []string, w working) error {
	commands := a.newCommander(w)
	ctx, stop := untilInterrupted(ctx, commands.kill)
	defer stop()
	ctx, end := context.WithCancel(ctx)
	defer end()
	drain := w.drain
	if drain == 0 {
		drain = -1 // none, where zero is the consumer's default
	}
	consumer := bide.NewConsumer(client, bide.ConsumerConfig{
		Concurrency:  w.concurrency,
		Lease:        w.lease,
		Timeout:      w.timeout,
		DrainTimeout: drain,
		Backoff:      bide.Exponential(w.retryFirst, w.retryMost),
		Logger:       a.logger(),
	})
	handler, batches := a.printers()
	if len(w.command) > 0 {
		handler, batches = commands.handle, commands.handleBatch
	}
	for _, queue := range queues {
		if w.batch > 0 {
			consumer.HandleBatch(w.scope(queue), batches, bide.BatchConfig{Max: w.batch})
		} else {
			consumer.HandlePart(w.scope(queue), handler)
		}
	}
	watching := make(chan error, 1)
	if w.untilEmpty {
		go func() { watching <- endWhenEmpty(ctx, client, queues, end) }()
	} else {
		watching <- nil
	}
	err := consumer.Run(ctx)
	end()
	return errors.Join(err, <-watching)
}

// endWhenEmpty calls end when no queue holds a message that waits or runs. What waits in a paused
// queue does not count.
func endWhenEmpty(ctx context.Context, client *bide.Client, queues []string, end func()) error {
	defer end()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		left := int64(0)
		for _, queue := range queues {
			st, err := client.Stats(ctx, queue)
			if err != nil {
				if ctx.Err() != nil {
					return nil
				}
				return err
			}
			left += st.Leased
			if !st.Config.Paused {
				left += st.Delayed + st.Ready
			}
		}
		if left == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
