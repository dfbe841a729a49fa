// SPDX-License-Identifier: Apache-2.0

package system

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/bench/result"
	"github.com/bidemq/bide/bench/server"
	"github.com/bidemq/bide/memstore"
	"github.com/bidemq/bide/pebblestore"
	"github.com/bidemq/bide/redisstore"
	"github.com/bidemq/bide/storage"
)

// Variation of how bide is used. The zero value is as anybody would begin.
type Variation struct {
	Redis     server.RedisOptions
	Config    storage.ConfigEdit               // of the queue
	Edit      func(index int, m *bide.Message) // of every message, nil is none
	Consumers int                              // each with all the handlers and, where there is a server, a Store of its own; 0 is 1
}

// bideSpecs are bide on its engines, everything else at its default.
func bideSpecs() []Spec { return Bide(Variation{}) }

// Bide is all of bide on its engines, used in some way.
func Bide(v Variation) []Spec {
	pebble := func(relaxed bool) opener {
		return func(_ context.Context, h *server.Host) (open, error) {
			store, err := pebblestore.Open(h.Data(), pebblestore.Options{Relaxed: relaxed, Logger: errorsOnly()})
			return shared(store), err
		}
	}
	redis := func(ctx context.Context, h *server.Host) (open, error) {
		address, err := h.StartRedis(ctx, v.Redis)
		return func(ctx context.Context) (storage.Engine, error) {
			return redisstore.OpenWith(ctx, "redis://"+address, redisstore.Options{Logger: errorsOnly()})
		}, err
	}
	memory := func(context.Context, *server.Host) (open, error) {
		return shared(memstore.New(memstore.Options{})), nil
	}
	return []Spec{
		bideSpec("bide-redis", "bide on Redis", "redisstore, Redis without persistence, default settings", v, redis),
		bideSpec("bide-embedded", "bide embedded, synced", "pebblestore, every answer after a sync of the disk", v, pebble(false)),
		bideSpec("bide-relaxed", "bide embedded, relaxed", "pebblestore, answers before the disk has synced", v, pebble(true)),
		bideSpec("bide-memory", "bide in memory", "memstore, nothing kept", v, memory),
	}
}

// open opens an engine; where there is no server it is the same every time.
type open func(context.Context) (storage.Engine, error)

// opener starts what engines need.
type opener func(context.Context, *server.Host) (open, error)

// shared is one engine for all.
func shared(e storage.Engine) open {
	return func(context.Context) (storage.Engine, error) { return e, nil }
}

func bideSpec(name, title, about string, v Variation, start opener) Spec {
	s := Spec{
		System: result.System{Name: name, Title: title, About: about, Kind: result.Bide},
		Batch:  true, Backlog: 100_000, Short: true,
	}
	switch name {
	case "bide-redis":
		s.Programs = []string{"redis-server"}
	case "bide-memory":
		s.Short, s.Skip = false, []string{"W5"}
	}
	s.Start = func(ctx context.Context, host *server.Host) (Running, error) {
		open, err := start(ctx, host)
		if err != nil {
			return nil, err
		}
		engine, err := open(ctx)
		if err != nil {
			return nil, err
		}
		return &bideSystem{Variation: v, open: open, engine: engine, client: bide.NewClient(engine, bide.ClientConfig{Logger: errorsOnly()})}, nil
	}
	return s
}

type bideSystem struct {
	Variation
	open   open
	engine storage.Engine
	client *bide.Client
	known  sync.Map // queues that are configured
}

// Producer configures the queue first, if it is to be anything but the default.
func (s *bideSystem) Producer(ctx context.Context, queue string) (Producer, error) {
	if _, known := s.known.LoadOrStore(queue, true); !known && s.Config != (storage.ConfigEdit{}) {
		if _, err := s.client.Configure(ctx, queue, s.Config); err != nil {
			return nil, err
		}
	}
	return bideProducer{s: s, queue: queue}, nil
}

func (s *bideSystem) Consume(ctx context.Context, queues []string, handlers int, handle func([]byte)) error {
	consumers := max(s.Consumers, 1)
	errs := make([]error, consumers)
	var running sync.WaitGroup
	for i := range consumers {
		running.Go(func() { errs[i] = s.consume(ctx, i, queues, handlers, handle) })
	}
	running.Wait()
	return errors.Join(errs...)
}

// consume runs one consumer, with an engine of its own unless it is the first.
func (s *bideSystem) consume(ctx context.Context, number int, queues []string, handlers int, handle func([]byte)) error {
	client := s.client
	if number > 0 {
		engine, err := s.open(ctx)
		if err != nil {
			return err
		}
		client = bide.NewClient(engine, bide.ClientConfig{Logger: errorsOnly()})
		if engine != s.engine {
			defer func() { _ = engine.Close() }() // after the client, and all is acknowledged
		}
		defer func() { _ = client.Close(context.WithoutCancel(ctx)) }() // it has nothing to send any more
	}
	consumer := bide.NewConsumer(client, bide.ConsumerConfig{Concurrency: handlers})
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

// Cancel implements Canceler.
func (s *bideSystem) Cancel(ctx context.Context, queue, id string) error {
	return s.client.Cancel(ctx, queue, id)
}

type bideProducer struct {
	s     *bideSystem
	queue string
}

// message as the variation has it.
func (p bideProducer) message(m Message) bide.Message {
	out := bide.Message{Body: m.Body, Due: m.Due}
	if p.s.Edit != nil {
		p.s.Edit(m.Index, &out)
	}
	return out
}

func (p bideProducer) Enqueue(ctx context.Context, m Message) error {
	_, err := p.s.client.Enqueue(ctx, p.queue, p.message(m))
	return err
}

func (p bideProducer) EnqueueBatch(ctx context.Context, ms []Message) error {
	batch := make([]bide.Message, len(ms))
	for i, m := range ms {
		batch[i] = p.message(m)
	}
	_, err := p.s.client.EnqueueMany(ctx, p.queue, batch)
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
