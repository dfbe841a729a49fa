// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/rueidis"
	"github.com/spf13/cobra"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/internal/importer"
	"github.com/bidemq/bide/internal/redisconn"
	"github.com/bidemq/bide/storage"
)

// importing is what the flags of all imports say.
type importing struct {
	from     string
	queue    string
	remove   bool
	dryRun   bool
	keep     bool
	forget   bool
	batch    int
	dedupFor time.Duration
	attempts int
}

const importHelp = `

Every message comes over exactly once, however often the import is interrupted and begun again: what
came over is noted in a hash beside the source (bide:import:...), for 30 days after the last run.
An entry that was changed since is enqueued again and takes the place of its message. Without
--remove the source stays as it is but for the notes; with it an entry leaves the source after it
came over, unless somebody has changed it meanwhile. What cannot be imported is reported, stays in the
source, and makes the exit code 1. docs/operations.md says more.`

func (a *app) imports() *cobra.Command {
	c := &cobra.Command{
		Use:   "import",
		Short: "Bring over the messages of another queue in Redis",
		Long:  "Bring over the messages of a queue that was written by hand, or of asynq." + importHelp,
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.importZSet(), a.importList(), a.importAsynq())
	for _, sub := range c.Commands() {
		sub.Long += importHelp
		sub.Args = usage(cobra.NoArgs)
	}
	return c
}

func (i *importing) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&i.from, "from", "", "Redis that the source is in, a URL like those of --store")
	f.BoolVar(&i.remove, "remove", false, "remove from the source what came over")
	f.BoolVar(&i.dryRun, "dry-run", false, "say what would be done and change nothing")
	f.BoolVar(&i.keep, "keep", false, "leave messages as they are that others have enqueued under the same ids; without it the source wins")
	f.BoolVar(&i.forget, "forget", false, "import everything, also what came over before")
	f.IntVar(&i.batch, "batch", 200, fmt.Sprintf("entries at once, 1 to %d", storage.MaxBatch))
	f.DurationVar(&i.dedupFor, "dedup-for", importer.DefaultDedup, "keep the ids taken for this long after the ack, for an import that is killed and begun again")
	f.IntVar(&i.attempts, "max-attempts", 0, fmt.Sprintf("attempts before a message is dead, -1 is no limit (default %d)", bide.DefaultMaxAttempts))
}

func (i *importing) check() error {
	switch {
	case i.from == "":
		return invalid("--from is missing: the Redis to import from, say redis://localhost:6379")
	case i.batch < 1 || i.batch > storage.MaxBatch:
		return invalid("--batch %d is not between 1 and %d", i.batch, storage.MaxBatch)
	case i.dedupFor <= 0:
		return invalid("--dedup-for %s is not positive", i.dedupFor)
	}
	return storage.CheckQueue(i.queue)
}

// run imports what source reads from the server of --from.
func (a *app) runImport(c *cobra.Command, i importing, source func(rueidis.Client) importer.Source) error {
	if err := i.check(); err != nil {
		return err
	}
	ctx, stop := untilInterrupted(c.Context(), func() {})
	defer stop()
	client, err := dialSource(ctx, i.from)
	if err != nil {
		return err
	}
	defer client.Close()
	target, err := importTarget(cmp.Or(a.url(), defaultStore))
	if err != nil {
		return err
	}
	t := &importTeller{app: a, dryRun: i.dryRun}
	config := importer.Config{
		Notes: client, Target: target, Queue: i.queue,
		Remove: i.remove, DryRun: i.dryRun, Keep: i.keep, Forget: i.forget, Batch: i.batch, DedupFor: i.dedupFor, MaxAttempts: i.attempts,
		Each: t.each, Total: t.total, Remark: t.remark,
	}
	if i.dryRun { // which does not even make a directory
		return t.end(importer.Run(ctx, source(client), config))
	}
	return a.with(context.WithoutCancel(ctx), func(target *bide.Client) error {
		config.Client = target
		return t.end(importer.Run(ctx, source(client), config))
	})
}

// dialSource connects to the Redis that --from names.
func dialSource(ctx context.Context, url string) (rueidis.Client, error) {
	t, err := redisconn.Parse(url)
	if err != nil {
		return nil, fmt.Errorf("--from: %w", err)
	}
	return dialRedis(ctx, t)
}

// dialRedis connects to a Redis that need not be fit to be a store.
func dialRedis(ctx context.Context, t redisconn.Target) (rueidis.Client, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, redisconn.DialTimeout, fmt.Errorf("no answer within %s", redisconn.DialTimeout))
	defer cancel()
	client, err := redisconn.Dial(ctx, t, nil)
	if err != nil && !errors.Is(err, context.Canceled) {
		err = fmt.Errorf("open %s: %w: %w", t, bide.ErrUnavailable, err)
	}
	return client, err
}
