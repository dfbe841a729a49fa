// SPDX-License-Identifier: Apache-2.0

// Package system makes queues of different projects look alike to the workloads, each used as its
// documentation says and through its own client.
package system

import (
	"context"
	"fmt"
	"os/exec"
	"time"

	"github.com/bidemq/bide/bench/result"
	"github.com/bidemq/bide/bench/server"
)

// Spec of a system that can be measured.
type Spec struct {
	result.System
	Batch    bool         // has a call for many messages
	Backlog  int          // messages that it drains in one to two seconds
	Slow     bool         // drains less than W4 has, and gets fewer messages there
	Short    bool         // part of the short run
	Programs []string     // that must be on the path
	Missing  func() error // what else it needs and this machine has not; nil where it needs nothing
	Skip     []string     // workloads that make no sense
	Start    func(ctx context.Context, host *server.Host) (Running, error)
}

// Available says why a system cannot be run on this machine, nil if it can.
func (s *Spec) Available() error {
	for _, p := range s.Programs {
		if _, err := exec.LookPath(p); err != nil {
			return fmt.Errorf("%s is not on the path", p)
		}
	}
	if s.Missing != nil {
		return s.Missing()
	}
	return nil
}

// Running is a system that was started: a Local or a Foreign one.
type Running interface {
	// Pending counts the messages of a queue that were not acknowledged.
	Pending(ctx context.Context, queue string) (int64, error)
	// Close ends everything but the servers.
	Close() error
}

// Local is a system whose client is in Go, so that producers and handlers run in the harness.
type Local interface {
	Running
	// Producer returns what one goroutine enqueues with.
	Producer(ctx context.Context, queue string) (Producer, error)
	// Consume hands the messages of the queues to at most so many handlers at a time, and
	// acknowledges what they were given. It returns when ctx has ended and no handler runs.
	Consume(ctx context.Context, queues []string, handlers int, handle func(body []byte)) error
}

// Canceler is a Local that can take messages back by their ids.
type Canceler interface {
	Cancel(ctx context.Context, queue, id string) error
}

// Foreign is a system whose client is in another language, so that producers and handlers run in
// processes of their own, which make and read the bodies.
type Foreign interface {
	Running
	// Produce lets producers enqueue, and returns how many messages they have.
	Produce(ctx context.Context, p Production) (int, error)
	// Receive is Consume for it. It enters the index of every message, and how long after its due
	// time it came, in nanoseconds.
	Receive(ctx context.Context, queues []string, handlers int, enter func(index int, lag int64)) error
}

// Production of messages.
type Production struct {
	Queue     string
	Producers int
	Batch     int           // messages a call
	Size      int           // of a body
	First     int           // index
	Most      int           // messages
	For       time.Duration // at most, 0 is until they are done
	Due       Due
}

// Due says when messages are due. Its zero value is now.
type Due struct {
	First time.Time     // zero is now
	Apart time.Duration // from one message to the next
	Over  int           // so many instants are taken, here and there; 0 is one after the other
}

// Of the message with an index.
func (d Due) Of(index int) time.Time {
	if d.First.IsZero() {
		return d.First
	}
	return d.First.Add(time.Duration(d.Scattered(index)) * d.Apart)
}

// Scattered is which of the instants the message with an index has. A power of ten of them are all
// taken before one is again.
func (d Due) Scattered(index int) int {
	const prime = 7_368_787
	if d.Over == 0 {
		return index
	}
	return index * prime % d.Over
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
	Index int // in the ledger of the run
	Body  []byte
	Due   time.Time // zero is now
}

// All systems, in the order of reports.
func All() []Spec {
	var all []Spec
	for _, some := range [][]Spec{bideSpecs(), ceilingSpecs(), barePebbleSpecs(), asynqSpecs(), beanstalkdSpecs(), natsSpecs(), riverSpecs(), bullSpecs()} {
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
