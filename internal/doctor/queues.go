// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/bidemq/bide/storage"
)

// Queues looks at the queues of a store.
type Queues struct {
	Engine storage.Engine
	Memory *Memory // measures keys in Redis, nil elsewhere
	Limits Limits
}

// Census is what all queues of a store held at one instant.
type Census struct {
	At      time.Time
	Records int64
	Bytes   int64 // in memory or on disk, 0 if that is not known
}

// queue is what is known about one queue.
type queue struct {
	name   string
	stats  storage.Stats
	usage  usage
	limits Limits
}

// names are how many queues are asked for at once.
const names = 200

// Look counts every queue.
func (q *Queues) Look(ctx context.Context) ([]Finding, Census, error) {
	census := Census{At: time.Now()}
	var found []Finding
	for after := ""; ; {
		page, err := q.Engine.Queues(ctx, after, names)
		if err != nil {
			return found, census, err
		}
		for _, name := range page {
			after = name
			one := queue{name: name, limits: q.Limits}
			if one.stats, err = q.Engine.Stats(ctx, time.Time{}, name); err != nil {
				return found, census, err
			}
			if q.Memory != nil {
				if one.usage, err = q.Memory.of(ctx, name); err != nil {
					return found, census, err
				}
			}
			census.Records += one.records()
			census.Bytes += one.usage.bytes
			found = append(found, one.look()...)
		}
		if len(page) < names {
			return found, census, nil
		}
	}
}

func (q *queue) records() int64 {
	s := q.stats
	return s.Delayed + s.Ready + s.Leased + s.Dead + s.Done
}

func (q *queue) look() (found []Finding) {
	s := q.stats
	warn := func(check string, harm Harm, what, why string, mend ...string) {
		found = append(found, Finding{Check: check, Severity: Warning, Harm: harm, Where: "queue " + q.name, What: what, Why: why, Mend: mend})
	}
	late := time.Duration(0)
	if s.Ready > 0 && !s.NextDue.IsZero() {
		late = s.Now.Sub(s.NextDue)
	}
	switch {
	case s.Config.Paused && s.Delayed+s.Ready > 0:
		warn("paused", Delay, fmt.Sprintf("it is paused and %d messages wait", s.Delayed+s.Ready),
			"nothing is delivered until it is resumed", "bide resume "+q.name)
	case late > q.limits.Lag && s.Leased == 0 && q.usage.waiting == 0:
		warn("no consumer", Stop, fmt.Sprintf("%d messages are ready, the oldest for %s, and nobody takes them", s.Ready, late.Round(time.Second)),
			"no consumer runs, or those that run handle other queues", "start a consumer of "+q.name)
	case late > q.limits.Lag:
		warn("lag", Delay, fmt.Sprintf("the oldest of %d ready messages has waited for %s", s.Ready, late.Round(time.Second)),
			"consumers are slower than producers", "run more consumers, or with more concurrency")
	}
	if s.Dead > q.limits.Dead {
		warn("dead", Loss, fmt.Sprintf("%d messages are dead", s.Dead),
			"they are kept, need memory, and nobody handles them", "bide ls "+q.name+" --state dead", "bide redrive "+q.name+" --all", "bide purge "+q.name+" --state dead")
	}
	if n := s.Total.Lapsed; n >= 10 && float64(n) > q.limits.Lapsed*float64(s.Total.Claimed) {
		warn("leases", Delay, fmt.Sprintf("%d of %d deliveries ended with their lease", n, s.Total.Claimed),
			"consumers die, or stand still for longer than their lease: those messages were handed out again and perhaps handled twice",
			"look for killed and frozen consumers; give them longer leases (ConsumerConfig.Lease)")
	}
	if n := s.Total.ClockSteps; n > 0 {
		warn("clock steps", Delay, fmt.Sprintf("the store's clock went back %d times by more than %s", n, storage.MaxClockStep),
			"what is due came late by that much", "let NTP slew the clock of the store's machine, not step it")
	}
	if q.usage.largest > q.limits.Key {
		warn("big key", Stop, fmt.Sprintf("key %s has %s", q.usage.key, size(float64(q.usage.largest))),
			"a server that moves, loads or frees it stands still meanwhile", "spread the messages over several queues, or look for those that nobody needs: bide stats "+q.name)
	}
	return found
}
