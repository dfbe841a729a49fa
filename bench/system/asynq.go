// SPDX-License-Identifier: Apache-2.0

package system

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hibiken/asynq"

	"github.com/bidemq/bide/bench/result"
	"github.com/bidemq/bide/bench/server"
)

// asynqSettings of one variant. Zero durations and sizes are asynq's defaults.
type asynqSettings struct {
	servers      int // in one process, which share the handlers
	pool         int
	check, delay time.Duration // of the polling for messages and for due ones
}

func asynqSpecs() []Spec {
	spec := func(name, title, about string, s asynqSettings) Spec {
		return Spec{
			System:  result.System{Name: name, Title: title, About: about, Kind: result.Peer},
			Backlog: 30_000, Short: true, Programs: []string{"redis-server"},
			Start: func(ctx context.Context, host *server.Host) (Running, error) {
				address, err := host.StartRedis(ctx, server.RedisOptions{})
				if err != nil {
					return nil, err
				}
				opt := asynq.RedisClientOpt{Addr: address, PoolSize: s.pool}
				return &asynqSystem{settings: s, opt: opt, client: asynq.NewClient(opt), inspector: asynq.NewInspector(opt)}, nil
			},
		}
	}
	return []Spec{
		spec("asynq-default", "asynq, default", "one server, all settings at their defaults, Redis without persistence", asynqSettings{servers: 1}),
		spec("asynq-tuned", "asynq, tuned", "four servers that share the handlers in one process, Redis pool of 100, TaskCheckInterval 10 ms, "+
			"DelayedTaskCheckInterval 100 ms, Redis without persistence",
			asynqSettings{servers: 4, pool: 100, check: 10 * time.Millisecond, delay: 100 * time.Millisecond}),
	}
}

type asynqSystem struct {
	settings  asynqSettings
	opt       asynq.RedisClientOpt
	client    *asynq.Client
	inspector *asynq.Inspector
}

func (s *asynqSystem) Producer(_ context.Context, queue string) (Producer, error) {
	return asynqProducer{client: s.client, queue: queue}, nil
}

func (s *asynqSystem) Consume(ctx context.Context, queues []string, handlers int, handle func([]byte)) error {
	weights := map[string]int{}
	for _, q := range queues {
		weights[q] = 1
	}
	handler := asynq.HandlerFunc(func(_ context.Context, t *asynq.Task) error {
		handle(t.Payload())
		return nil
	})
	for range s.settings.servers {
		srv := asynq.NewServer(s.opt, asynq.Config{
			Concurrency: handlers / s.settings.servers, Queues: weights, LogLevel: asynq.FatalLevel,
			TaskCheckInterval: s.settings.check, DelayedTaskCheckInterval: s.settings.delay,
		})
		if err := srv.Start(handler); err != nil {
			return fmt.Errorf("start asynq: %w", err)
		}
		defer srv.Shutdown()
	}
	<-ctx.Done()
	return nil
}

func (s *asynqSystem) Pending(_ context.Context, queue string) (int64, error) {
	info, err := s.inspector.GetQueueInfo(queue)
	if errors.Is(err, asynq.ErrQueueNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return int64(info.Size + info.Archived), nil
}

func (s *asynqSystem) Close() error { return errors.Join(s.client.Close(), s.inspector.Close()) }

type asynqProducer struct {
	client *asynq.Client
	queue  string
}

func (p asynqProducer) Enqueue(ctx context.Context, m Message) error {
	opts := []asynq.Option{asynq.Queue(p.queue)}
	if !m.Due.IsZero() { // it stores whole seconds and cuts the rest off
		opts = append(opts, asynq.ProcessAt(m.Due.Add(time.Second-1).Truncate(time.Second)))
	}
	_, err := p.client.EnqueueContext(ctx, asynq.NewTask("bench", m.Body), opts...)
	return err
}

func (p asynqProducer) EnqueueBatch(ctx context.Context, ms []Message) error { return each(ctx, p, ms) }

func (asynqProducer) Close() error { return nil }
