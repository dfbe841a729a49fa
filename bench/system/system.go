// SPDX-License-Identifier: Apache-2.0

// Package system makes queues of different projects look alike to the workloads, each used as its
// documentation says and through its own client.
package system

import (
	"context"
	"time"

	"github.com/bidemq/bide/bench/result"
	"github.com/bidemq/bide/bench/server"
)

// Spec of a system that can be measured.
type Spec struct {
	result.System
	Batch    bool     // has a call for many messages
	Backlog  int      // messages that it drains in one to two seconds
	Short    bool     // part of the short run
	Programs []string // that must be on the path
	Skip     []string // workloads that make no sense
	Start    func(ctx context.Context, host *server.Host) (Running, error)
}

// Running is a system that was started.
type Running interface {
	// Producer returns what one goroutine enqueues with.
	Producer(ctx context.Context, queue string) (Producer, error)
	// Consume hands the messages of the queues to at most so many handlers at a time, and
	// acknowledges what they were given. It returns when ctx has ended and no handler runs.
	Consume(ctx context.Context, queues []string, handlers int, handle func(body []byte)) error
	// Pending counts the messages of a queue that were not acknowledged.
	Pending(ctx context.Context, queue string) (int64, error)
	// Close ends everything but the servers.
	Close() error
}

// Producer enqueues. It is used by one goroutine.
type Producer interface {
	// Enqueue returns when the system has answered that it has the message.
	Enqueue(ctx context.Context, m Message) error
	// EnqueueBatch is Enqueue for many in one go, where the system can.
	EnqueueBatch(ctx context.Context, ms []Message) error
	Close() error
}

// Message to enqueue. A system that counts in whole seconds rounds Due up.
type Message struct {
	Body []byte
	Due  time.Time // zero is now
}

// All systems, in the order of reports.
func All() []Spec {
	var all []Spec
	for _, some := range [][]Spec{bideSpecs(), ceilingSpecs(), barePebbleSpecs(), asynqSpecs(), beanstalkdSpecs(), natsSpecs()} {
		all = append(all, some...)
	}
	return all
}

// each enqueues one after another, for systems without a call for many.
func each(ctx context.Context, p Producer, ms []Message) error {
	for _, m := range ms {
		if err := p.Enqueue(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// wholeSeconds is how long until an instant, rounded up to seconds so that nothing is early through
// our doing.
func wholeSeconds(due time.Time) time.Duration {
	if due.IsZero() {
		return 0
	}
	d := max(time.Until(due), 0)
	return (d + time.Second - 1).Truncate(time.Second)
}

// pause sleeps, and ends with its context.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
