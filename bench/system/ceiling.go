// SPDX-License-Identifier: Apache-2.0

package system

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/bidemq/bide/bench/result"
	"github.com/bidemq/bide/bench/server"
)

// Sizes of the ceiling: those of the bare patterns that were found fastest.
const (
	ceilingBatch   = 100
	ceilingFlights = 2 // calls under way for single messages
	ceilingLoops   = 4 // that take and acknowledge
)

// ceilingSpecs are the storage work of a queue and nothing else, so that what a real queue adds to it
// can be told. It knows no attempts, retries, crashes or wake-ups, and is of no use to anybody.
func ceilingSpecs() []Spec {
	return []Spec{{
		System: result.System{
			Name: "ceiling-redis", Title: "ceiling of Redis", Kind: result.Ceiling,
			About: "HSET and LPUSH (or ZADD), pop into a lease set, acknowledge: three Lua scripts in batches of " +
				strconv.Itoa(ceilingBatch) + ", no features, Redis without persistence",
		},
		Batch: true, Backlog: 200_000, Short: true, Programs: []string{"redis-server"},
		Skip: []string{"W4", "W4b", "W6"},
		Start: func(ctx context.Context, host *server.Host) (Running, error) {
			address, err := host.StartRedis(ctx, server.RedisOptions{})
			if err != nil {
				return nil, err
			}
			client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{address}, DisableCache: true})
			if err != nil {
				return nil, fmt.Errorf("connect to redis: %w", err)
			}
			return newCeiling(client), nil
		},
	}}
}

var (
	//go:embed ceiling_put.lua
	putText string
	//go:embed ceiling_take.lua
	takeText string
	//go:embed ceiling_ack.lua
	ackText string
)

type ceiling struct {
	client         rueidis.Client
	put, take, ack *rueidis.Lua
	ids            atomic.Int64
	single         chan single // messages that are enqueued one by one
	end            chan struct{}
	flights        sync.WaitGroup
}

// single is a message whose producer waits.
type single struct {
	queue  string
	m      Message
	answer chan error
}

func newCeiling(client rueidis.Client) *ceiling {
	c := &ceiling{
		client: client,
		put:    rueidis.NewLuaScript(putText),
		take:   rueidis.NewLuaScript(takeText),
		ack:    rueidis.NewLuaScript(ackText),
		single: make(chan single, 1024),
		end:    make(chan struct{}),
	}
	for range ceilingFlights {
		c.flights.Go(c.fly)
	}
	return c
}

// fly puts single messages together as long as there are some.
func (c *ceiling) fly() {
	for {
		var batch []single
		select {
		case <-c.end:
			return
		case s := <-c.single:
			batch = append(batch, s)
		}
	more:
		for len(batch) < ceilingBatch {
			select {
			case s := <-c.single:
				batch = append(batch, s)
			default:
				break more
			}
		}
		ms := make([]Message, len(batch))
		for i, s := range batch {
			ms[i] = s.m
		}
		err := c.enqueue(context.Background(), batch[0].queue, ms)
		for _, s := range batch {
			s.answer <- err
		}
	}
}

// keys of a queue: records, ready list, delayed set, lease set.
func ceilingKeys(queue string) []string {
	tag := "{" + queue + "}:"
	return []string{tag + "records", tag + "ready", tag + "delayed", tag + "leased"}
}

func (c *ceiling) enqueue(ctx context.Context, queue string, ms []Message) error {
	args := make([]string, 0, 3*len(ms))
	for _, m := range ms {
		due := ""
		if !m.Due.IsZero() {
			due = strconv.FormatInt(m.Due.UnixMilli(), 10)
		}
		args = append(args, fmt.Sprintf("%016x", c.ids.Add(1)), due, rueidis.BinaryString(m.Body))
	}
	return c.put.Exec(ctx, c.client, ceilingKeys(queue), args).Error()
}

func (c *ceiling) Producer(_ context.Context, queue string) (Producer, error) {
	return &ceilingProducer{c: c, queue: queue, answer: make(chan error, 1)}, nil
}

// Consume takes batches in a few loops and runs the handlers in them, which do nothing.
func (c *ceiling) Consume(ctx context.Context, queues []string, _ int, handle func([]byte)) error {
	var loops sync.WaitGroup
	errs := make(chan error, ceilingLoops*len(queues))
	for range ceilingLoops {
		for _, q := range queues {
			loops.Go(func() {
				for ctx.Err() == nil {
					n, err := c.consume(ctx, q, handle)
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

// consume takes one batch and acknowledges it.
func (c *ceiling) consume(ctx context.Context, queue string, handle func([]byte)) (int, error) {
	call := context.WithoutCancel(ctx) // what was taken is acknowledged
	lease := strconv.FormatInt(time.Now().Add(time.Minute).UnixMilli(), 10)
	got, err := c.take.Exec(call, c.client, ceilingKeys(queue), []string{strconv.Itoa(ceilingBatch), lease}).ToArray()
	if err != nil || len(got) == 0 {
		return 0, err
	}
	ids := make([]string, 0, len(got)/2)
	for i := range len(got) / 2 {
		id, err := got[i].ToString()
		if err != nil {
			return 0, err
		}
		body, err := got[len(got)/2+i].AsBytes()
		if err != nil {
			return 0, err
		}
		handle(body)
		ids = append(ids, id)
	}
	return len(ids), c.ack.Exec(call, c.client, ceilingKeys(queue), ids).Error()
}

func (c *ceiling) Pending(ctx context.Context, queue string) (int64, error) {
	return c.client.Do(ctx, c.client.B().Hlen().Key(ceilingKeys(queue)[0]).Build()).AsInt64()
}

func (c *ceiling) Close() error {
	close(c.end)
	c.flights.Wait()
	c.client.Close()
	return nil
}

type ceilingProducer struct {
	c      *ceiling
	queue  string
	answer chan error
}

func (p *ceilingProducer) Enqueue(ctx context.Context, m Message) error {
	select {
	case p.c.single <- single{p.queue, m, p.answer}:
		return <-p.answer
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *ceilingProducer) EnqueueBatch(ctx context.Context, ms []Message) error {
	return p.c.enqueue(ctx, p.queue, ms)
}

func (*ceilingProducer) Close() error { return nil }
