// SPDX-License-Identifier: Apache-2.0

package bide

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/bidemq/bide/storage"
)

// ConsumerConfig of a Consumer. The zero value is usable.
type ConsumerConfig struct {
	// Concurrency bounds the handlers that run at once, over all queues; 0 is 16.
	Concurrency int
	// Queues weighs queues that share the consumer: one of weight 3 gets three times the handler
	// time of one of weight 1 while both have messages; a queue alone gets everything. Queues that
	// are not named weigh 1. Where parts of a queue have handlers of their own, each part weighs as
	// much as is said here.
	Queues map[string]int
	// Lease is how long a message stays with a consumer that has vanished, 1 s to storage.MaxLease;
	// 0 is 30 s. Running handlers keep theirs, however long they take: a lease below 1 s leaves no
	// time to extend it over a network.
	Lease time.Duration
	// Timeout ends a handler's context this long after its start, 0 is never.
	Timeout time.Duration
	// Grace is how long a handler may go on after its context ended. Then it counts as stuck: its
	// lease is kept no longer, and another handler gets its place. 0 is 10 s.
	Grace time.Duration
	// DrainTimeout is how long running handlers have to finish once Run's context has ended, before
	// their contexts end too. 0 is 30 s, negative is no time at all.
	DrainTimeout time.Duration
	// Backoff says when a failed message is tried again, nil is Exponential(5*time.Second,
	// 6*time.Hour).
	Backoff Backoff
	// Name tells people who has a message; "" is the host's name and the process id.
	Name string
	// Middleware wraps the handlers of all queues, the first outermost.
	Middleware []Middleware
	// Logger gets what the consumer recovered from (Warn) and gave up on (Error), nil is the
	// client's.
	Logger *slog.Logger
	// Hooks are called by the consumer; OnEnqueue is the client's.
	Hooks Hooks
	// OnDead is called for every message that dies in the queues of the consumer, whatever killed
	// it: the last attempt, a handler that gave up, the end of a lease while no consumer ran, too
	// many deliveries. It is called at least once, and normally once, also where several consumers
	// have one; a message is told again if OnDead failed for it, or if the process ended before it
	// was noted that it had been told. One call runs at a time for each queue.
	//
	// The engine keeps what is not told with the dead themselves (storage.QueueConfig.TellDead, which
	// Run switches on for the queues). So what died before that is not told, nor what is purged,
	// redriven or over the limits of dead messages before its turn comes.
	//
	// ctx ends when Run does, or before: somebody else may tell then. What dies in the drain is told
	// before Run returns, if that takes no longer than Grace.
	OnDead func(ctx context.Context, dead Dead) error
	// OnDeadEvery is how often the queues are looked through for dead messages to tell, 0 is 5 s. A
	// death by this consumer is told at once; one by another process, or by the end of a lease, is
	// known to the engine alone, which does not report it by itself. A look costs one call for each
	// queue.
	OnDeadEvery time.Duration
}

// Consumer claims the messages of its queues and runs their handlers. Where these take less time than a
// claim, it has a few milliseconds' worth of messages claimed ahead of them. What no handler has begun
// after a tenth of a second is given back, and no attempt is spent.
type Consumer struct {
	client *Client
	config ConsumerConfig
	log    *slog.Logger

	mu     sync.Mutex
	routes map[string]*route // by the name of the scope
	begun  bool
}

// NewConsumer returns a Consumer without handlers, see [Queue.Handle]. It panics if the
// configuration is out of its bounds.
func NewConsumer(client *Client, config ConsumerConfig) *Consumer {
	if client == nil {
		misuse("NewConsumer without a client")
	}
	config.Concurrency = cmp.Or(config.Concurrency, 16)
	config.Lease = cmp.Or(config.Lease, 30*time.Second)
	config.OnDeadEvery = cmp.Or(config.OnDeadEvery, 5*time.Second)
	config.Grace = cmp.Or(config.Grace, 10*time.Second)
	config.DrainTimeout = cmp.Or(config.DrainTimeout, 30*time.Second)
	config.Queues = maps.Clone(config.Queues)
	if config.Backoff == nil {
		config.Backoff = defaultBackoff()
	}
	if config.Logger == nil {
		config.Logger = client.log
	}
	if config.Name == "" {
		host, err := os.Hostname()
		if err != nil {
			host = "unknown host"
		}
		config.Name = fmt.Sprintf("%s/%d", host, os.Getpid())
	}
	if config.Concurrency < 1 || config.Grace < 0 || config.Timeout < 0 || config.OnDeadEvery < 0 ||
		config.Lease < time.Second || config.Lease > storage.MaxLease {
		misuse("NewConsumer: Concurrency, Lease, Grace, Timeout or OnDeadEvery is out of its bounds")
	}
	for name, weight := range config.Queues {
		if weight < 1 {
			misuse("NewConsumer: queue %q has weight %d, at least 1 is needed", name, weight)
		}
	}
	for _, wrap := range config.Middleware {
		if wrap == nil {
			misuse("NewConsumer: a Middleware is nil")
		}
	}
	return &Consumer{client: client, config: config, log: config.Logger, routes: map[string]*route{}}
}

// route is what a consumer does with the messages of a scope.
type route struct {
	scope   storage.Scope
	handler Handler
	batch   *BatchConfig // nil for one message at a time
}

// Handle makes the consumer run h for every message of a queue, whatever its payload;
// [Queue.Handle] is the typed form. It panics if the handler is nil, the queue has one already, or
// the consumer is running.
func (c *Consumer) Handle(queue string, h Handler, wraps ...Middleware) {
	c.HandlePart(storage.Scope{Queue: queue}, h, wraps...)
}

// HandlePart is Handle for the messages of certain keys, or of all but certain ones: a hot key can
// have handlers, or a consumer, of its own. A consumer may handle several parts of a queue; what is
// in two of them goes to either. [Queue.Only] and [Queue.Except] are the typed form.
func (c *Consumer) HandlePart(scope storage.Scope, h Handler, wraps ...Middleware) {
	if h == nil {
		misuse("queue %q has a nil handler", scope.Queue)
	}
	c.handle(&route{scope: scope, handler: h}, wraps)
}

func (c *Consumer) handle(to *route, wraps []Middleware) {
	queue, h := to.scope.Queue, to.handler
	to.scope.Keys, to.scope.Except = slices.Clone(to.scope.Keys), slices.Clone(to.scope.Except)
	if err := to.scope.Check(); err != nil {
		misuse("%v", err)
	}
	for _, wrap := range slices.Backward(slices.Concat(c.config.Middleware, wraps)) {
		if wrap == nil {
			misuse("queue %q has a nil Middleware", queue)
		}
		if h = wrap(h); h == nil {
			misuse("a Middleware of queue %q returned nil", queue)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.begun {
		misuse("Handle after Run")
	}
	name := to.scope.String()
	if c.routes[name] != nil {
		misuse("queue %q has a handler for the same messages already", queue)
	}
	to.handler = h
	c.routes[name] = to
}

// Run handles messages until ctx ends. It then claims no more, gives back what it has claimed and
// not begun, lets running handlers finish for DrainTimeout, ends their contexts with ErrShutdown
// and waits for Grace. An engine that fails does not end it: it logs, waits and goes on.
//
// Run returns nil when every handler has returned and every message was settled. Otherwise it says
// how many were left; their messages come back when their leases end. ErrInvalid means that nothing
// was begun: there is no handler, a queue has a weight and no handler, or Run was called before.
func (c *Consumer) Run(ctx context.Context) error {
	if err := c.begin(); err != nil {
		return err
	}
	r := newRun(ctx, c)
	var keeping sync.WaitGroup
	keepCtx, stopKeeping := context.WithCancel(context.WithoutCancel(ctx))
	keeping.Go(func() { r.keeper.run(keepCtx) })
	defer keeping.Wait()
	defer stopKeeping()
	r.tell()
	r.loop(ctx)
	err := r.drain()
	return errors.Join(err, r.tellers.finish(c.config.Grace))
}

func (c *Consumer) begin() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.begun {
		return fmt.Errorf("%w: Run was called before", ErrInvalid)
	}
	if len(c.routes) == 0 {
		return fmt.Errorf("%w: the consumer has no handler", ErrInvalid)
	}
	handled := map[string]bool{}
	for _, to := range c.routes {
		handled[to.scope.Queue] = true
	}
	for _, queue := range slices.Sorted(maps.Keys(c.config.Queues)) {
		if !handled[queue] {
			return fmt.Errorf("%w: queue %q has a weight and no handler", ErrInvalid, queue)
		}
	}
	c.begun = true
	return nil
}
