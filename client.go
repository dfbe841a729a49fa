// SPDX-License-Identifier: Apache-2.0

package bide

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/bidemq/bide/storage"
)

// ClientConfig of a Client. The zero value is usable.
type ClientConfig struct {
	// MaxBatch bounds how many messages, or settlements, go to the engine in one call: 1 to
	// storage.MaxBatch, 0 is 256.
	MaxBatch int
	// MaxBatchBytes bounds the bytes of a call of more than one message, 0 is 4 MiB.
	MaxBatchBytes int
	// Flights bounds the calls under way at once per queue for single messages, and as many for
	// settlements; 0 is 2. With 1, concurrent callers share more calls. Another one is begun only if
	// 8 wait, or the last was begun a millisecond ago.
	Flights int
	// RepeatFor bounds how long an Enqueue or a settlement waits for an engine that is unavailable,
	// its turn included, and is repeated meanwhile; 0 is 10 s, negative repeats nothing. A consumer
	// repeats its settlements as long as its lease.
	RepeatFor time.Duration
	// Logger gets what the client recovered from (Warn) and gave up on (Error), nil is
	// slog.Default.
	Logger *slog.Logger
	// Hooks are called by the client; those about handlers are the consumer's.
	Hooks Hooks
}

// Client enqueues, looks after and claims messages. Its methods may be called from many goroutines.
//
// Single messages that are enqueued at the same time travel together, and so do settlements: what
// arrives while a call of the engine is under way goes with the next, and a caller that is alone
// waits for nothing. Those calls are repeated while the engine is unavailable, no others are. One
// that the engine does not answer within 30 s, or a consumer's within a third of its lease, is cut
// off and counts as unavailable.
type Client struct {
	engine  storage.Engine
	sharder storage.Sharder // the engine, nil if it is none
	config  ClientConfig
	log     *slog.Logger
	ids     *ulid.LockedMonotonicReader

	cancel  context.CancelFunc // ends the calls that batches make
	records *batcher[storage.Record, storage.EnqueueResult]
	settles *batcher[storage.Settlement, bool]
	topics  topicCache
}

// NewClient returns a Client over an engine, which stays the caller's to close. It panics if the
// configuration is out of its bounds.
func NewClient(engine storage.Engine, config ClientConfig) *Client {
	config.MaxBatch = cmp.Or(config.MaxBatch, 256)
	config.MaxBatchBytes = cmp.Or(config.MaxBatchBytes, 4<<20)
	config.Flights = cmp.Or(config.Flights, 2)
	config.RepeatFor = cmp.Or(config.RepeatFor, 10*time.Second)
	if engine == nil {
		misuse("NewClient without an engine")
	}
	if config.MaxBatch < 1 || config.MaxBatch > storage.MaxBatch || config.MaxBatchBytes < 1 || config.Flights < 1 {
		misuse("NewClient: MaxBatch, MaxBatchBytes or Flights is out of its bounds")
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := &Client{
		engine: engine,
		config: config,
		log:    logger(config.Logger),
		ids:    &ulid.LockedMonotonicReader{MonotonicReader: ulid.Monotonic(rand.Reader, 0)},
		cancel: cancel,
	}
	c.sharder, _ = engine.(storage.Sharder)
	c.records = newBatcher(ctx, c.store, config)
	c.settles = newBatcher(ctx, c.settleBatch, config)
	return c
}

// Close lets no further message or settlement in, and waits until those under way are answered, all
// of an EnqueueMany included. When ctx ends before that, those that were sent are given up with
// [ErrUnknown], the rest of an EnqueueMany with [ErrClosed], and Close returns ctx's error. It does
// not close the engine; what does not change messages keeps working until that is closed.
func (c *Client) Close(ctx context.Context) error {
	err := errors.Join(c.records.close(ctx), c.settles.close(ctx))
	c.cancel()
	return err
}

// newID makes an id that sorts by the time of its making and is unique everywhere.
func (c *Client) newID() string {
	id, err := ulid.New(ulid.Now(), c.ids)
	if err != nil { // the ids of this millisecond are used up
		return rand.Text()
	}
	return id.String()
}

func logger(l *slog.Logger) *slog.Logger {
	if l == nil {
		return slog.Default()
	}
	return l
}
