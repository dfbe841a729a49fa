// SPDX-License-Identifier: Apache-2.0

package system

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/bidemq/bide/bench/result"
	"github.com/bidemq/bide/bench/server"
)

// barePebbleSpecs are the storage work of a queue in a directory and nothing else, as ceilingSpecs are
// that on Redis.
func barePebbleSpecs() []Spec {
	spec := func(name, title, sync string, relaxed bool) Spec {
		return Spec{
			System: result.System{
				Name: name, Title: title, Kind: result.Ceiling,
				About: "a record written, read from the head with a lease record beside it, both deleted, on bare Pebble with everything " +
					"that waits in one group commit, no features, " + sync,
			},
			Batch: true, Backlog: 300_000, Short: true, Skip: []string{"W4", "W4b", "W6"},
			Start: func(_ context.Context, host *server.Host) (Running, error) { return openBare(host.Data(), relaxed) },
		}
	}
	return []Spec{
		spec("ceiling-embedded", "ceiling of Pebble, synced", "every answer after a sync of the disk", false),
		spec("ceiling-relaxed", "ceiling of Pebble, relaxed", "answers before the disk has synced", true),
	}
}

// barePebble is a queue without anything that makes a queue of use.
type barePebble struct {
	*bareWriter
	mu     sync.Mutex
	queues map[string]*bareQueue
}

// bareQueue numbers its messages without gaps, in the order in which they are written.
type bareQueue struct {
	number  byte
	last    uint64        // ready message that was numbered; belongs to the writer
	delayed uint64        // and delayed one; belongs to the writer
	written atomic.Uint64 // all up to this one can be read
	acked   atomic.Uint64 // how many
	mu      sync.Mutex    // guards taken
	taken   uint64        // all up to this one
}

func openBare(dir string, relaxed bool) (*barePebble, error) {
	cache := pebble.NewCache(256 << 20)
	defer cache.Unref()
	db, err := pebble.Open(dir, &pebble.Options{ // what the engine of bide opens it with, but for filters
		Cache: cache, Logger: bareLogger{}, FormatMajorVersion: pebble.FormatNewest, MemTableSize: 32 << 20,
		MemTableStopWritesThreshold: 4, L0CompactionThreshold: 4, L0StopWritesThreshold: 32, LBaseMaxBytes: 256 << 20,
	})
	if err != nil {
		return nil, fmt.Errorf("open pebble: %w", err)
	}
	return &barePebble{bareWriter: newBareWriter(db, relaxed), queues: map[string]*bareQueue{}}, nil
}

func (s *barePebble) queue(name string) *bareQueue {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queues[name]
	if q == nil {
		q = &bareQueue{number: byte(len(s.queues))}
		s.queues[name] = q
	}
	return q
}

func (s *barePebble) Producer(_ context.Context, queue string) (Producer, error) {
	return bareProducer{s, s.queue(queue)}, nil
}

// Consume takes batches in a few loops and runs the handlers in them, which do nothing.
func (s *barePebble) Consume(ctx context.Context, queues []string, _ int, handle func([]byte)) error {
	var loops sync.WaitGroup
	errs := make(chan error, ceilingLoops*len(queues))
	for range ceilingLoops {
		for _, name := range queues {
			q := s.queue(name)
			loops.Go(func() {
				for ctx.Err() == nil {
					n, err := s.consume(q, handle)
					if err != nil {
						errs <- err
						return
					}
					if n == 0 {
						pause(ctx, time.Millisecond)
					}
				}
			})
		}
	}
	loops.Wait()
	close(errs)
	return <-errs
}

// consume takes one batch, which is on the disk before it is handled, and acknowledges it.
func (s *barePebble) consume(q *bareQueue, handle func([]byte)) (int, error) {
	first, end := q.take(ceilingBatch)
	if first == end {
		return 0, nil
	}
	bodies, err := s.read(q, first, end)
	if err != nil {
		return 0, err
	}
	until := time.Now().Add(time.Minute).UnixMilli()
	err = s.do(func(b *pebble.Batch) error { return q.lease(b, first, end, until) })
	if err != nil {
		return 0, err
	}
	for _, body := range bodies {
		handle(body)
	}
	if err := s.do(func(b *pebble.Batch) error { return q.ack(b, first, end) }); err != nil {
		return 0, err
	}
	q.acked.Add(end - first)
	return len(bodies), nil
}

// read copies the bodies of messages from the disk.
func (s *barePebble) read(q *bareQueue, first, end uint64) (bodies [][]byte, err error) {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: q.key(kindReady, 0, first), UpperBound: q.key(kindReady, 0, end)})
	if err != nil {
		return nil, err
	}
	for ok := it.First(); ok; ok = it.Next() {
		bodies = append(bodies, append([]byte(nil), it.Value()...))
	}
	return bodies, it.Close()
}

func (s *barePebble) Pending(_ context.Context, queue string) (int64, error) {
	q := s.queue(queue)
	return int64(q.written.Load() - q.acked.Load()), nil
}

type bareProducer struct {
	s *barePebble
	q *bareQueue
}

func (p bareProducer) Enqueue(ctx context.Context, m Message) error {
	return p.EnqueueBatch(ctx, []Message{m})
}

func (p bareProducer) EnqueueBatch(_ context.Context, ms []Message) error {
	return p.s.enqueue(p.q, ms)
}

func (bareProducer) Close() error { return nil }

// bareLogger passes errors on.
type bareLogger struct{}

func (bareLogger) Infof(string, ...any) {}

func (bareLogger) Errorf(format string, args ...any) { slog.Error(fmt.Sprintf(format, args...)) }

func (l bareLogger) Fatalf(format string, args ...any) { l.Errorf(format, args...) }
