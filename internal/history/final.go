// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"fmt"
	"time"

	"github.com/bidemq/bide/storage"
)

// Final is what a queue holds when everything is over: no process makes calls any more, and the
// consumers have had the time to handle what was due.
type Final struct {
	Queue   string
	Stats   storage.Stats
	Records []storage.Record
	Damage  []storage.Fix // what Repair would mend
}

// Look reads a queue whole.
func Look(ctx context.Context, e storage.Engine, queue string) (Final, error) {
	f := Final{Queue: queue}
	for _, state := range []storage.State{storage.Leased, storage.Ready, storage.Delayed, storage.Dead, storage.Done} {
		filter := storage.Filter{State: state, Limit: storage.MaxBatch}
		for more := true; more; {
			page, err := e.List(ctx, time.Time{}, queue, filter)
			if err != nil {
				return f, fmt.Errorf("list %s of %q: %w", state, queue, err)
			}
			f.Records = append(f.Records, page.Records...)
			more, filter.After = page.More, page.Last
		}
	}
	repair := storage.Repair{DryRun: true, Limit: storage.MaxBatch}
	for {
		step, err := e.Repair(ctx, time.Time{}, queue, repair)
		if err != nil {
			return f, fmt.Errorf("repair %q: %w", queue, err)
		}
		f.Damage = append(f.Damage, step.Fixes...)
		if repair.After = step.Next; step.Next == "" {
			break
		}
	}
	var err error
	f.Stats, err = e.Stats(ctx, time.Time{}, queue)
	return f, err
}
