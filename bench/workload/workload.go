// SPDX-License-Identifier: Apache-2.0

// Package workload has what every system is put through, the same for all.
package workload

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/bidemq/bide/bench/ledger"
	"github.com/bidemq/bide/bench/result"
	"github.com/bidemq/bide/bench/server"
	"github.com/bidemq/bide/bench/system"
)

// handlers that run at once, in all workloads.
const handlers = 64

// Workload that a system is put through.
type Workload struct {
	Name  string // as on the command line
	Title string // as in the report
	Speed bool   // measures speed, so that it is repeated also in the short run
	Batch bool   // needs a call for many messages
	run   func(ctx context.Context, b *bench) (map[string]float64, error)
}

// All workloads, in the order of reports.
func All() []Workload {
	return []Workload{
		{Name: "W1-16", Title: "enqueue one by one, 16 producers", Speed: true, run: produce(16, 1)},
		{Name: "W1-512", Title: "enqueue one by one, 512 producers", Speed: true, run: produce(512, 1)},
		{Name: "W1-batch", Title: "enqueue in batches of 100, 16 producers", Speed: true, Batch: true, run: produce(16, batchSize)},
		{Name: "W2", Title: "drain a backlog, 64 handlers", Speed: true, run: drain},
		{Name: "W3-16", Title: "end to end, 16 producers, 64 handlers", Speed: true, run: flow(16)},
		{Name: "W3-512", Title: "end to end, 512 producers, 64 handlers", Speed: true, run: flow(512)},
		{Name: "W4", Title: "lag of messages that are due 0.5 ms apart", run: spread},
		{Name: "W4b", Title: "10,000 messages due at one instant", run: burst},
		{Name: "W5", Title: "bytes per message that waits for its time", run: size},
		{Name: "W6", Title: "ten idle queues with consumers", run: idle},
	}
}

// Growth has the workloads that are about size rather than about systems.
func Growth() []Workload {
	return []Workload{{Name: "waiting", Title: "enqueue, claim and cancel beside many that wait", Speed: true, run: waiting}}
}

// Suits says whether a workload makes sense for a system.
func (w Workload) Suits(s system.Spec) bool {
	return (s.Batch || !w.Batch) && !slices.Contains(s.Skip, w.Name)
}

// Shape of a workload. The zero value is the usual one.
type Shape struct {
	Body    int // bytes of a body, 0 is ledger.Size
	Queues  int // that messages are spread over, 0 is 1
	Waiting int // messages that wait for their time meanwhile, where the workload has such
}

// bench is one run: a system that was just started, and the settings.
type bench struct {
	result.Settings
	body   int
	queues []string // that messages are spread over
	spec   system.Spec
	host   *server.Host
	system system.Running
	ledger *ledger.Ledger
	closed bool

	waiting    int   // Shape.Waiting
	resting    int64 // messages that stay in the queues when all others are acknowledged
	goroutines int   // at most, so far
}

// Run starts a system, measures one workload and ends the system.
func (w Workload) Run(ctx context.Context, spec system.Spec, host *server.Host, settings result.Settings, shape Shape) (metrics map[string]float64, err error) {
	running, err := spec.Start(ctx, host)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	b := &bench{Settings: settings, body: cmp.Or(shape.Body, ledger.Size), queues: []string{queue}, spec: spec, host: host, system: running, waiting: shape.Waiting}
	if shape.Queues > 1 {
		b.queues = names(shape.Queues)
	}
	defer func() {
		if cerr := b.close(); err == nil {
			err = cerr
		}
	}()
	return w.run(ctx, b)
}

// names of so many queues.
func names(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("%s%d", queue, i)
	}
	return all
}

func (b *bench) close() error {
	if b.closed {
		return nil
	}
	b.closed = true
	return b.system.Close()
}

// backlog is how many messages are to wait: as many as the system drains in about the seconds that
// producers get, in whole batches, and not more than the machine has room for.
func (b *bench) backlog() int {
	n := min(b.Messages, max(batchSize, int(float64(b.spec.Backlog)*b.Seconds)), backlogBytes/b.body)
	return n - n%batchSize
}

// open begins a ledger for as many messages as can come.
func (b *bench) open(room int) { b.ledger = ledger.New(room, b.body) }

// seconds as a duration.
func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// millis of a duration.
func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
