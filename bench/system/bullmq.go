// SPDX-License-Identifier: Apache-2.0

package system

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/bidemq/bide/bench/result"
	"github.com/bidemq/bide/bench/server"
)

// bullWarm is how many messages a Node process has seen before the time is taken. It begins slowly.
const bullWarm = 3000

// bullSpecs are BullMQ, whose producers and handlers are the program bullmq/bench.js.
func bullSpecs() []Spec {
	spec := func(name, title, about string, workers int) Spec {
		return Spec{
			System: result.System{Name: name, Title: title, About: about, Kind: result.Peer},
			Batch:  true, Backlog: 10_000, Programs: []string{"redis-server", "node"},
			Missing: func() error {
				_, err := BullMQ()
				return err
			},
			Start: func(ctx context.Context, host *server.Host) (Running, error) { return startBull(ctx, host, workers) },
		}
	}
	return []Spec{
		spec("bullmq-default", "BullMQ, default", "one Node process with producers and a Worker of concurrency 64, finished messages removed, Redis without persistence", 0),
		spec("bullmq-tuned", "BullMQ, tuned", "a Node process with the producers and two with a Worker of concurrency 32 each, finished messages removed, "+
			"Redis without persistence", 2),
	}
}

// BullMQ returns the directory with the program, once npm has installed what it needs.
func BullMQ() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		program := filepath.Join(dir, "system", "bullmq")
		if _, err := os.Stat(filepath.Join(program, "bench.js")); err == nil {
			if _, err := os.Stat(filepath.Join(program, "node_modules")); err != nil {
				return "", errors.New("BullMQ is not installed (make setup)")
			}
			return program, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("system/bullmq is not in this directory or one above it")
		}
		dir = filepath.Dir(dir)
	}
}

type bull struct {
	producers *node
	workers   []*node
}

// startBull runs the Node processes; without any for workers that of the producers has them.
func startBull(ctx context.Context, host *server.Host, workers int) (Running, error) {
	dir, err := BullMQ()
	if err != nil {
		return nil, err
	}
	address, err := host.StartRedis(ctx, server.RedisOptions{})
	if err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	var all []*node
	for range workers + 1 {
		talk, err := host.StartClient("node", filepath.Join(dir, "bench.js"), port)
		if err != nil {
			return nil, err
		}
		all = append(all, newNode(talk))
	}
	if err := warmAll(ctx, all); err != nil {
		return nil, err
	}
	if workers == 0 {
		return &bull{all[0], all}, nil
	}
	return &bull{all[0], all[1:]}, nil
}

// warmAll lets every process see some messages, all at once.
func warmAll(ctx context.Context, all []*node) error {
	errs := make(chan error, len(all))
	for _, n := range all {
		go func() {
			_, err := n.ask(ctx, nodeOrder{Do: "warm", Most: bullWarm})
			errs <- err
		}()
	}
	var failed []error
	for range all {
		failed = append(failed, <-errs)
	}
	return errors.Join(failed...)
}

func (s *bull) Produce(ctx context.Context, p Production) (int, error) {
	o := nodeOrder{
		Do: "produce", Queue: p.Queue, Producers: p.Producers, Batch: p.Batch, Size: p.Size, First: p.First, Most: p.Most,
		Millis: p.For.Milliseconds(), Apart: float64(p.Due.Apart.Nanoseconds()) / 1000,
	}
	if !p.Due.First.IsZero() {
		o.Due = p.Due.First.UnixMicro()
	}
	a, err := s.producers.ask(ctx, o)
	return a.Sent, err
}

func (s *bull) Receive(ctx context.Context, queues []string, handlers int, enter func(int, int64)) error {
	for _, w := range s.workers {
		w.listen(enter)
		if _, err := w.ask(ctx, nodeOrder{Do: "consume", Queues: queues, Handlers: handlers / len(s.workers)}); err != nil {
			return err
		}
	}
	ended := make(chan error, len(s.workers))
	for _, w := range s.workers {
		go func() { ended <- w.end(ctx) }()
	}
	var errs []error
	for range s.workers {
		errs = append(errs, <-ended)
	}
	return errors.Join(errs...)
}

func (s *bull) Pending(ctx context.Context, queue string) (int64, error) {
	a, err := s.producers.ask(ctx, nodeOrder{Do: "pending", Queue: queue})
	if err != nil {
		return 0, fmt.Errorf("ask bullmq: %w", err)
	}
	return int64(a.Sent), nil
}

func (s *bull) Close() error { return nil }
