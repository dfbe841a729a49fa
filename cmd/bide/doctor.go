// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/internal/doctor"
	"github.com/bidemq/bide/internal/redisconn"
)

// errProblems makes the exit code of doctor 2.
var errProblems = errors.New("problems")

func (a *app) doctor() *cobra.Command {
	var watch time.Duration
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Look for what would lose messages or hurt, and say how to mend it",
		Long: `Look at the settings and the state of a store for what would lose, stop or delay messages, and say how
to mend it. Nothing is changed: settings and counters are read, a server is pinged, a directory is
tried with a scratch file. On Redis it works where bide would not open the store, too.

Exit codes: 0 nothing to mend, 1 warnings, 2 problems, 4 the store cannot be reached.`,
		Example: `  bide doctor --store redis://localhost
  bide doctor --store redis://localhost --watch 1m --json`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if watch < 0 {
				return invalid("--watch %s is negative", watch)
			}
			found, err := a.examine(c.Context(), watch)
			return errors.Join(a.showFindings(found, err == nil), err, verdict(found))
		},
	}
	c.Flags().DurationVar(&watch, "watch", 0, "look twice, this far apart, and tell when the store will be full")
	return c
}

// examine looks at the store of whatever kind.
func (a *app) examine(ctx context.Context, watch time.Duration) ([]doctor.Finding, error) {
	store := cmp.Or(a.url(), defaultStore)
	scheme, rest, _ := strings.Cut(store, ":")
	switch scheme = strings.ToLower(scheme); {
	case scheme == "mem":
		return nil, invalid("mem: forgets everything when its process ends: that is all there is to say")
	case scheme == "pebble":
		return a.examineDirectory(ctx, store, rest, watch)
	case strings.HasPrefix(scheme, "redis"):
		return a.examineRedis(ctx, store, watch)
	}
	_, err := openStore(ctx, store, a.logger()) // says what a store is
	return nil, err
}

func (a *app) examineRedis(ctx context.Context, store string, watch time.Duration) ([]doctor.Finding, error) {
	t, err := redisconn.Parse(store)
	if err != nil {
		return nil, err
	}
	client, err := dialRedis(ctx, t)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	limits := doctor.Defaults()
	server := doctor.Redis{Client: client, Namespace: t.Namespace, Limits: limits, Now: time.Now}
	found, err := server.Look(ctx)
	if err != nil {
		return found, fmt.Errorf("%w: %w", bide.ErrUnavailable, err)
	}
	memory := &doctor.Memory{Client: client, Namespace: t.Namespace}
	fs, err := a.examineQueues(ctx, store, t.String(), memory, watch, func() (int64, int64, error) {
		room, _, err := memory.Room(ctx)
		return room, 0, err
	})
	found = append(found, fs...)
	if err != nil && doctor.Worst(found) == doctor.Problem { // which is why, as a rule
		found = append(found, doctor.Finding{
			Check: "queues", Severity: doctor.Note, Harm: doctor.Unseen, Where: t.String(),
			What: "its queues were not looked at", Why: err.Error(), Mend: []string{"mend what is above and look again"},
		})
		err = nil
	}
	return found, err
}

func (a *app) examineDirectory(ctx context.Context, store, rest string, watch time.Duration) ([]doctor.Finding, error) {
	path := directory(rest)
	dir := doctor.Directory{Path: path, Limits: doctor.Defaults()}
	found := dir.Look()
	for _, f := range found {
		if f.Check == "directory" || f.Check == "write" {
			return found, nil // there is nothing to open
		}
	}
	fs, err := a.examineQueues(ctx, store, path, nil, watch, func() (int64, int64, error) {
		room, used := dir.Room()
		return room, used, nil
	})
	if errors.Is(err, bide.ErrUnavailable) {
		return append(found, dir.Held(err)), nil
	}
	return append(found, fs...), err
}

// directory is the path in what follows pebble: of a store.
func directory(rest string) string {
	path, _, _ := strings.Cut(rest, "?")
	if absolute, ok := strings.CutPrefix(path, "///"); ok {
		return "/" + absolute
	}
	return path
}

// examineQueues counts the queues, twice if it is to watch them. Room returns the bytes that are left
// and, unless memory measures queues, those that are in use.
func (a *app) examineQueues(
	ctx context.Context,
	store, where string,
	memory *doctor.Memory,
	watch time.Duration,
	room func() (left, used int64, err error),
) ([]doctor.Finding, error) {
	engine, err := openStore(ctx, store, slog.New(slog.DiscardHandler)) // what it would warn of is found anyway
	if err != nil {
		return nil, err
	}
	defer func() { _ = engine.Close() }() // it was only read
	queues := doctor.Queues{Engine: engine, Memory: memory, Limits: doctor.Defaults()}
	found, first, err := queues.Look(ctx)
	second := first
	if err == nil && watch > 0 {
		select {
		case <-ctx.Done():
			return found, ctx.Err()
		case <-time.After(watch):
		}
		found, second, err = queues.Look(ctx)
	}
	if err != nil {
		return found, err
	}
	left, used, err := room()
	if err != nil {
		return found, err
	}
	second.Bytes = cmp.Or(second.Bytes, used)
	return append(found, doctor.Forecast(where, first, second, left, doctor.Defaults())...), nil
}

// verdict turns findings into an exit code.
func verdict(found []doctor.Finding) error {
	n := map[doctor.Severity]int{}
	for _, f := range found {
		n[f.Severity]++
	}
	switch {
	case n[doctor.Problem] > 0:
		return fmt.Errorf("%w: %d, warnings: %d", errProblems, n[doctor.Problem], n[doctor.Warning])
	case n[doctor.Warning] > 0:
		return fmt.Errorf("warnings: %d", n[doctor.Warning])
	}
	return nil
}

func (a *app) showFindings(found []doctor.Finding, whole bool) error {
	if a.json {
		for _, f := range found {
			if err := a.printJSON(f); err != nil {
				return err
			}
		}
		return nil
	}
	for _, f := range found {
		harm := ""
		if f.Severity != doctor.Note {
			harm = ", " + string(f.Harm)
		}
		a.printf("%s%s: %s (%s)\n  %s\n", strings.ToUpper(string(f.Severity)), harm, plain(f.What), plain(f.Where), plain(f.Why))
		for _, m := range f.Mend {
			a.printf("  > %s\n", m)
		}
	}
	if worst := doctor.Worst(found); whole && (worst == "" || worst == doctor.Note) {
		a.printf("nothing to mend\n")
	}
	return nil
}
