// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/bidemq/bide/internal/redisconn"
	"github.com/bidemq/bide/storage"
)

// Options of a Store; the zero value is usable.
type Options struct {
	Namespace string       // first part of every key, so that several programs can share a server; "" is "default"
	MaxBody   int          // bytes of body and headers, 0 is storage.DefaultBody
	Logger    *slog.Logger // gets warnings about the server, nil is slog.Default
	TLS       *tls.Config  // for rediss, and for redis+sentinel and redis+cluster if not nil

	// Replicas is how many replicas of the server must have what an Enqueue or a Settle has changed
	// before it is answered; 0 is none, the answer then means that the primary has it. If too few say
	// so within a second, the call is storage.ErrUnavailable and its outcome unknown: it is done, a
	// failover may undo it, and repeating it does no harm. A failover loses no answered message if
	// the replica that takes over is one of them: set min-replicas-to-write to the same number, and
	// have no more replicas than that, or one that must not be promoted. It costs a round trip
	// between the servers a call, and a connection for each call under way. Everything else, such as
	// locks, cancels and edits, waits for no replica.
	Replicas int
}

// Store is an engine in Redis. Its methods may be called from many goroutines.
type Store struct {
	client    rueidis.Client
	cluster   bool
	options   Options
	keys      func(queue string) []string // of a queue, in the order of queue.lua
	lockKeys  []string                    // in the order of lock.lua
	topicKeys []string
	address   string // for errors

	life context.Context // ends with Close
	end  context.CancelCauseFunc
	work sync.WaitGroup // goroutines that listen

	settling sync.Map // by name of queue, those whose older layouts this process waits to be rid of
	settleIn time.Duration

	whole     sync.Map // names of queues, and of shards, that have keys, bounds or retention
	named     sync.Map // the keys of queues that calls were made on
	spreads   sync.Map // by name of queue, what is known about those that are spread over shards
	listed    sync.Map // by name of queue, when this process has put it into the list of queues
	watches   *watches
	lockWaits lockWaits
	mu        sync.Mutex // orders the first Wait and Close
	listening bool       // guarded by mu
}

var (
	_ storage.Engine  = (*Store)(nil)
	_ storage.Sharder = (*Store)(nil)
)

// Open connects to the Redis that a URL names:
//
//	redis://[user:password@]host[:port][/db]
//	rediss://…                                               the same with TLS
//	redis+unix:///path/to.sock[?db=0]
//	redis+sentinel://[user:password@]host:port,host:port/primary[/db]
//	redis+cluster://[user:password@]host:port,host:port
//
// User and password are those of the servers, not of the Sentinels, which are asked without. The
// parameters namespace=name and replicas=n do what the Options of that name do. An unreachable server is
// [storage.ErrUnavailable] within five seconds; a server that evicts keys or is too old is
// [storage.ErrInvalid].
func Open(ctx context.Context, url string) (*Store, error) {
	return OpenWith(ctx, url, Options{})
}

// OpenWith is Open with options.
func OpenWith(ctx context.Context, url string, o Options) (*Store, error) {
	t, err := redisconn.Parse(url)
	if err != nil {
		return nil, fmt.Errorf("redisstore: %w", err)
	}
	if o.Namespace == "" {
		o.Namespace = t.Namespace
	}
	if o.Namespace == "" {
		o.Namespace = defaultNamespace
	}
	o.Replicas = cmp.Or(o.Replicas, t.Replicas)
	if o.Replicas < 0 {
		return nil, fmt.Errorf("redisstore: %w: %d replicas", storage.ErrInvalid, o.Replicas)
	}
	if err := storage.CheckQueue(o.Namespace); err != nil {
		return nil, fmt.Errorf("redisstore: namespace %q: %w", o.Namespace, err)
	}
	if o.MaxBody == 0 {
		o.MaxBody = storage.DefaultBody
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	client, err := connect(ctx, t, o)
	if err != nil {
		return nil, err
	}
	life, end := context.WithCancelCause(context.Background())
	s := &Store{
		client:    client,
		cluster:   client.Mode() == rueidis.ClientModeCluster,
		options:   o,
		keys:      func(queue string) []string { return queueKeys(o.Namespace, queue) },
		lockKeys:  lockKeys(o.Namespace),
		topicKeys: topicKeys(o.Namespace),
		lockWaits: lockWaits{calls: map[string]*lockWait{}},
		address:   t.String(),
		settleIn:  settleFirst,
		life:      life,
		end:       end,
	}
	s.watches = newWatches("bide:" + o.Namespace + ":" + rand.Text()[:12])
	s.watches.pass = s.pass
	s.watches.rehear = s.lockWaits.again
	return s, nil
}

// Close ends every call under way with [storage.ErrClosed] and cuts the connections.
func (s *Store) Close() error {
	s.mu.Lock()
	s.end(storage.ErrClosed)
	s.mu.Unlock()
	s.work.Wait()
	s.client.Close()
	return nil
}

// keysOf returns the keys of a queue, which are put together once.
func (s *Store) keysOf(queue string) []string {
	if keys, ok := s.named.Load(queue); ok {
		if keys, ok := keys.([]string); ok {
			return keys
		}
	}
	keys := s.keys(queue)
	s.named.Store(queue, keys)
	return keys
}

// within returns a context that ends with the caller's or with the store.
func (s *Store) within(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.life, func() { cancel(storage.ErrClosed) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// open returns the error of a call that should not begin.
func (s *Store) open(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.life.Err() != nil {
		return fmt.Errorf("redisstore: %w", storage.ErrClosed)
	}
	return nil
}
