// SPDX-License-Identifier: Apache-2.0

package system

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/bidemq/bide/bench/result"
	"github.com/bidemq/bide/bench/server"
)

// riverSettings of one variant. Zero values are River's defaults.
type riverSettings struct {
	workers     int // 0 is one for each handler
	cooldown    time.Duration
	connections int32
	copy        bool // batches go by COPY
	postgres    []string
}

func riverSpecs() []Spec {
	spec := func(name, title, about string, backlog int, s riverSettings) Spec {
		return Spec{
			System: result.System{Name: name, Title: title, About: about, Kind: result.Peer},
			Batch:  true, Backlog: backlog, Slow: backlog < 2000,
			Missing: func() error {
				_, err := server.FindPostgres()
				return err
			},
			Start: func(ctx context.Context, host *server.Host) (Running, error) { return startRiver(ctx, host, s) },
		}
	}
	return []Spec{
		spec("river-default", "River, default", "on PostgreSQL as it is installed, MaxWorkers 64, all other settings at their defaults", 600, riverSettings{}),
		spec("river-tuned", "River, tuned", "on PostgreSQL with synchronous_commit off, MaxWorkers 2,000 (the handlers that may run at once), FetchCooldown 1 ms, "+
			"pool of 32 connections, batches by InsertManyFast", 8000,
			riverSettings{workers: 2000, cooldown: time.Millisecond, connections: 32, copy: true, postgres: []string{"synchronous_commit=off"}}),
	}
}

type riverSystem struct {
	riverSettings
	pool   *pgxpool.Pool
	client *river.Client[pgx.Tx] // enqueues only
}

func startRiver(ctx context.Context, host *server.Host, s riverSettings) (Running, error) {
	address, err := host.StartPostgres(ctx, s.postgres...)
	if err != nil {
		return nil, err
	}
	config, err := pgxpool.ParseConfig("postgres://postgres@" + address + "/postgres?sslmode=disable")
	if err != nil {
		return nil, err
	}
	if s.connections > 0 {
		config.MaxConns = s.connections
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("connect to postgres: %w", err)
	}
	for pool.Ping(ctx) != nil && ctx.Err() == nil { // it listens before it is ready
		pause(ctx, 10*time.Millisecond)
	}
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Logger: errorsOnly()})
	if err != nil {
		return nil, err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return nil, fmt.Errorf("make the tables of river: %w", err)
	}
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{Logger: errorsOnly()})
	return &riverSystem{riverSettings: s, pool: pool, client: client}, err
}

// riverArgs is a message, as JSON.
type riverArgs struct {
	Body string `json:"body"`
}

// Kind implements river.JobArgs.
func (riverArgs) Kind() string { return "bench" }

func (s *riverSystem) Producer(_ context.Context, queue string) (Producer, error) {
	return riverProducer{s, queue}, nil
}

func (s *riverSystem) Consume(ctx context.Context, queues []string, handlers int, handle func([]byte)) error {
	workers := river.NewWorkers()
	river.AddWorker(workers, river.WorkFunc(func(_ context.Context, j *river.Job[riverArgs]) error {
		handle([]byte(j.Args.Body))
		return nil
	}))
	config := &river.Config{
		Workers: workers, Queues: map[string]river.QueueConfig{}, FetchCooldown: s.cooldown, Logger: slog.New(slog.DiscardHandler),
	}
	for _, q := range queues {
		config.Queues[q] = river.QueueConfig{MaxWorkers: max(s.workers, handlers)}
	}
	client, err := river.NewClient(riverpgxv5.New(s.pool), config)
	if err != nil {
		return err
	}
	if err := client.Start(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("start river: %w", err)
	}
	<-ctx.Done()
	return client.Stop(context.WithoutCancel(ctx))
}

func (s *riverSystem) Pending(ctx context.Context, queue string) (n int64, err error) {
	const count = `SELECT count(*) FROM river_job WHERE queue = $1 AND state IN ('available', 'pending', 'retryable', 'running', 'scheduled')`
	err = s.pool.QueryRow(ctx, count, queue).Scan(&n)
	return n, err
}

func (s *riverSystem) Close() error {
	s.pool.Close()
	return nil
}

type riverProducer struct {
	s     *riverSystem
	queue string
}

func (p riverProducer) params(m Message) river.InsertManyParams {
	return river.InsertManyParams{Args: riverArgs{string(m.Body)}, InsertOpts: &river.InsertOpts{Queue: p.queue, ScheduledAt: m.Due}}
}

func (p riverProducer) Enqueue(ctx context.Context, m Message) error {
	params := p.params(m)
	_, err := p.s.client.Insert(ctx, params.Args, params.InsertOpts)
	return err
}

func (p riverProducer) EnqueueBatch(ctx context.Context, ms []Message) error {
	params := make([]river.InsertManyParams, len(ms))
	for i, m := range ms {
		params[i] = p.params(m)
	}
	if !p.s.copy {
		_, err := p.s.client.InsertMany(ctx, params)
		return err
	}
	n, err := p.s.client.InsertManyFast(ctx, params)
	if err == nil && n != len(ms) {
		err = errors.New("river has not inserted all")
	}
	return err
}

func (riverProducer) Close() error { return nil }
