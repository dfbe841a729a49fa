// SPDX-License-Identifier: Apache-2.0

package system

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/bench/result"
	"github.com/bidemq/bide/bench/server"
	"github.com/bidemq/bide/memstore"
	"github.com/bidemq/bide/pebblestore"
	"github.com/bidemq/bide/redisstore"
	"github.com/bidemq/bide/storage"
)

// bideSpecs are bide on its engines, everything else at its default.
func bideSpecs() []Spec {
	pebble := func(relaxed bool) func(context.Context, *server.Host) (storage.Engine, error) {
		return func(_ context.Context, h *server.Host) (storage.Engine, error) {
			return pebblestore.Open(h.Data(), pebblestore.Options{Relaxed: relaxed, Logger: errorsOnly()})
		}
	}
	return []Spec{
		bideSpec("bide-redis", "bide on Redis", "redisstore, Redis without persistence, default settings", true,
			[]string{"redis-server"}, nil, func(ctx context.Context, h *server.Host) (storage.Engine, error) {
				address, err := h.StartRedis(ctx)
				if err != nil {
					return nil, err
				}
				return redisstore.OpenWith(ctx, "redis://"+address, redisstore.Options{Logger: errorsOnly()})
			}),
		bideSpec("bide-embedded", "bide embedded, synced", "pebblestore, every answer after a sync of the disk", true, nil, nil, pebble(false)),
		bideSpec("bide-relaxed", "bide embedded, relaxed", "pebblestore, answers before the disk has synced", true, nil, nil, pebble(true)),
		bideSpec("bide-memory", "bide in memory", "memstore, nothing kept", false, nil, []string{"W5"},
			func(context.Context, *server.Host) (storage.Engine, error) {
				return memstore.New(memstore.Options{}), nil
			}),
	}
}

func bideSpec(name, title, about string, short bool, programs, skip []string, open func(context.Context, *server.Host) (storage.Engine, error)) Spec {
	return Spec{
		System: result.System{Name: name, Title: title, About: about, Kind: result.Bide},
		Batch:  true, Backlog: 100_000, Short: short, Programs: programs, Skip: skip,
		Start: func(ctx context.Context, host *server.Host) (Running, error) {
			engine, err := open(ctx, host)
			if err != nil {
				return nil, err
			}
			return &bideSystem{engine: engine, client: bide.NewClient(engine, bide.ClientConfig{Logger: errorsOnly()})}, nil
		},
	}
}

type bideSystem struct {
	engine storage.Engine
	client *bide.Client
}

func (s *bideSystem) Producer(_ context.Context, queue string) (Producer, error) {
	return bideProducer{client: s.client, queue: queue}, nil
}

func (s *bideSystem) Consume(ctx context.Context, queues []string, handlers int, handle func([]byte)) error {
	consumer := bide.NewConsumer(s.client, bide.ConsumerConfig{Concurrency: handlers})
	for _, q := range queues {
		consumer.Handle(q, func(_ context.Context, d *bide.Delivery[[]byte]) error {
			handle(d.Body)
			return nil
		})
	}
	return consumer.Run(ctx)
}

func (s *bideSystem) Pending(ctx context.Context, queue string) (int64, error) {
	stats, err := s.engine.Stats(ctx, time.Time{}, queue)
	if errors.Is(err, storage.ErrNotFound) {
		return 0, nil
	}
	return stats.Delayed + stats.Ready + stats.Leased + stats.Dead, err
}

func (s *bideSystem) Close() error {
	ctx, stop := context.WithTimeout(context.Background(), 10*time.Second)
	defer stop()
	return errors.Join(s.client.Close(ctx), s.engine.Close())
}

type bideProducer struct {
	client *bide.Client
	queue  string
}

func (p bideProducer) Enqueue(ctx context.Context, m Message) error {
	_, err := p.client.Enqueue(ctx, p.queue, bide.Message{Body: m.Body, Due: m.Due})
	return err
}

func (p bideProducer) EnqueueBatch(ctx context.Context, ms []Message) error {
	batch := make([]bide.Message, len(ms))
	for i, m := range ms {
		batch[i] = bide.Message{Body: m.Body, Due: m.Due}
	}
	_, err := p.client.EnqueueMany(ctx, p.queue, batch)
	return err
}

func (bideProducer) Close() error { return nil }

// errorsOnly keeps what is no error, such as the warning about a Redis that keeps nothing, off the
// terminal.
func errorsOnly() *slog.Logger {
	return slog.New(levelHandler{slog.DiscardHandler})
}

// levelHandler hands errors to the default logger and drops the rest.
type levelHandler struct{ slog.Handler }

func (levelHandler) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelError }

func (levelHandler) Handle(ctx context.Context, r slog.Record) error {
	return slog.Default().Handler().Handle(ctx, r)
}
