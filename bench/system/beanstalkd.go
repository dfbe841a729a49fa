// SPDX-License-Identifier: Apache-2.0

package system

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/beanstalkd/go-beanstalk"

	"github.com/bidemq/bide/bench/result"
	"github.com/bidemq/bide/bench/server"
)

const (
	beanstalkdLease = time.Minute
	beanstalkdWait  = time.Hour // of a reserve, longer than any run
)

func beanstalkdSpecs() []Spec {
	spec := func(name, title, about string, backlog int, args func(host *server.Host) []string) Spec {
		return Spec{
			System:  result.System{Name: name, Title: title, About: about, Kind: result.Peer},
			Backlog: backlog, Programs: []string{"beanstalkd"},
			Start: func(ctx context.Context, host *server.Host) (Running, error) {
				address, err := host.Start(ctx, "beanstalkd", func(port string) []string {
					return append([]string{"-l", "127.0.0.1", "-p", port}, args(host)...)
				})
				return beanstalkd{address}, err
			},
		}
	}
	return []Spec{
		spec("beanstalkd-memory", "beanstalkd, in memory", "a connection for each producer and handler, nothing kept", 40_000,
			func(*server.Host) []string { return nil }),
		spec("beanstalkd-synced", "beanstalkd, synced", "-b -f 0: a sync of the disk for every write", 6_000,
			func(h *server.Host) []string { return []string{"-b", h.Data(), "-f", "0"} }),
	}
}

// beanstalkd is its address: every producer and handler has a connection.
type beanstalkd struct{ address string }

func (s beanstalkd) dial() (*beanstalk.Conn, error) {
	c, err := beanstalk.Dial("tcp", s.address)
	if err != nil {
		return nil, fmt.Errorf("connect to beanstalkd: %w", err)
	}
	return c, nil
}

func (s beanstalkd) Producer(_ context.Context, queue string) (Producer, error) {
	c, err := s.dial()
	if err != nil {
		return nil, err
	}
	return beanstalkdProducer{beanstalk.NewTube(c, queue)}, nil
}

func (s beanstalkd) Consume(ctx context.Context, queues []string, handlers int, handle func([]byte)) error {
	var loops sync.WaitGroup
	errs := make(chan error, handlers)
	for range handlers {
		c, err := s.dial()
		if err != nil {
			errs <- err
			break
		}
		context.AfterFunc(ctx, func() { _ = c.Close() }) // ends its reserve
		loops.Go(func() {
			tubes := beanstalk.NewTubeSet(c, queues...)
			for {
				id, body, err := tubes.Reserve(beanstalkdWait)
				if err == nil {
					handle(body)
					err = c.Delete(id)
				}
				if ctx.Err() != nil {
					return
				}
				if err != nil {
					errs <- err
					return
				}
			}
		})
	}
	loops.Wait()
	close(errs)
	return <-errs
}

func (s beanstalkd) Pending(_ context.Context, queue string) (int64, error) {
	c, err := s.dial()
	if err != nil {
		return 0, err
	}
	defer func() { _ = c.Close() }()
	stats, err := beanstalk.NewTube(c, queue).Stats()
	if errors.Is(err, beanstalk.ErrNotFound) { // a tube that is empty and unused is gone
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	var sum int64
	for _, name := range []string{"current-jobs-ready", "current-jobs-reserved", "current-jobs-delayed", "current-jobs-buried"} {
		n, err := strconv.ParseInt(stats[name], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%s of beanstalkd: %w", name, err)
		}
		sum += n
	}
	return sum, nil
}

func (beanstalkd) Close() error { return nil }

type beanstalkdProducer struct{ tube *beanstalk.Tube }

func (p beanstalkdProducer) Enqueue(_ context.Context, m Message) error {
	_, err := p.tube.Put(m.Body, 1, wholeSeconds(m.Due), beanstalkdLease)
	return err
}

func (p beanstalkdProducer) EnqueueBatch(ctx context.Context, ms []Message) error {
	return each(ctx, p, ms)
}

func (p beanstalkdProducer) Close() error { return p.tube.Conn.Close() }
