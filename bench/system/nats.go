// SPDX-License-Identifier: Apache-2.0

package system

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/bidemq/bide/bench/result"
	"github.com/bidemq/bide/bench/server"
)

// natsPull is how many messages a consumer asks for at a time, the best found.
const natsPull = 2000

func natsSpecs() []Spec {
	spec := func(name, title, about string, storage jetstream.StorageType) Spec {
		return Spec{
			System: result.System{Name: name, Title: title, About: about, Kind: result.Peer},
			Batch:  true, Backlog: 200_000,
			Start: func(ctx context.Context, host *server.Host) (Running, error) {
				self, err := os.Executable() // it contains the server, see ServeNATS
				if err != nil {
					return nil, err
				}
				address, err := host.Start(ctx, self, func(port string) []string {
					return []string{"nats-server", port, host.Data()}
				})
				if err != nil {
					return nil, err
				}
				return openNATS(ctx, address, storage)
			},
		}
	}
	return []Spec{
		spec("nats-memory", "NATS JetStream, in memory", "work queue stream in memory, one pull consumer of 2,000 messages a request", jetstream.MemoryStorage),
		spec("nats-file", "NATS JetStream, on disk", "work queue stream in files, synced every two minutes (the default), one pull consumer of 2,000 messages a request",
			jetstream.FileStorage),
	}
}

type natsSystem struct {
	conn   *nats.Conn
	js     jetstream.JetStream
	stream jetstream.Stream
}

func openNATS(ctx context.Context, address string, storage jetstream.StorageType) (*natsSystem, error) {
	conn, err := nats.Connect("nats://" + address)
	if err != nil {
		return nil, fmt.Errorf("connect to nats: %w", err)
	}
	js, err := jetstream.New(conn, jetstream.WithPublishAsyncMaxPending(1<<16))
	if err != nil {
		return nil, fmt.Errorf("connect to nats: %w", err)
	}
	stream, err := js.CreateStream(ctx, jetstream.StreamConfig{
		Name: "bench", Subjects: []string{"now.*", "later.>"}, Retention: jetstream.WorkQueuePolicy, Storage: storage,
		AllowMsgSchedules: true, AllowRollup: true,
	})
	if err != nil {
		return nil, fmt.Errorf("create a stream: %w", err)
	}
	return &natsSystem{conn, js, stream}, nil
}

func (s *natsSystem) Producer(_ context.Context, queue string) (Producer, error) {
	return &natsProducer{s: s, queue: queue}, nil
}

func (s *natsSystem) Consume(ctx context.Context, queues []string, handlers int, handle func([]byte)) error {
	work := make(chan jetstream.Msg, handlers)
	var pool sync.WaitGroup
	errs := make(chan error, handlers)
	for range handlers {
		pool.Go(func() {
			for m := range work {
				handle(m.Data())
				if err := m.Ack(); err != nil {
					select {
					case errs <- err:
					default:
					}
				}
			}
		})
	}
	var closed []<-chan struct{}
	for _, q := range queues {
		consumer, err := s.stream.CreateOrUpdateConsumer(ctx, jetstream.ConsumerConfig{
			Durable: q, FilterSubject: "now." + q, AckPolicy: jetstream.AckExplicitPolicy, MaxAckPending: -1,
		})
		if err != nil {
			return fmt.Errorf("create a consumer: %w", err)
		}
		cc, err := consumer.Consume(func(m jetstream.Msg) { work <- m }, jetstream.PullMaxMessages(natsPull))
		if err != nil {
			return fmt.Errorf("consume: %w", err)
		}
		defer cc.Stop()
		closed = append(closed, cc.Closed())
		context.AfterFunc(ctx, cc.Stop)
	}
	for _, c := range closed {
		<-c
	}
	close(work)
	pool.Wait()
	close(errs)
	return errors.Join(<-errs, s.conn.Flush())
}

// Pending counts what the queue's consumer has not acknowledged, or all if nobody has consumed yet.
func (s *natsSystem) Pending(ctx context.Context, queue string) (int64, error) {
	consumer, err := s.stream.Consumer(ctx, queue)
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		info, err := s.stream.Info(ctx, jetstream.WithSubjectFilter("now."+queue))
		if err != nil {
			return 0, err
		}
		return int64(info.State.Subjects["now."+queue]), nil
	}
	if err != nil {
		return 0, err
	}
	info, err := consumer.Info(ctx)
	if err != nil {
		return 0, err
	}
	return int64(info.NumPending) + int64(info.NumAckPending), nil
}

func (s *natsSystem) Close() error {
	s.conn.Close()
	return nil
}

type natsProducer struct {
	s     *natsSystem
	queue string
	n     int
}

// message is due through a schedule of its own subject, which is how NATS tells schedules apart.
func (p *natsProducer) message(m Message) *nats.Msg {
	target := "now." + p.queue
	if m.Due.IsZero() {
		return &nats.Msg{Subject: target, Data: m.Body}
	}
	return &nats.Msg{
		Subject: "later." + p.queue + "." + nats.NewInbox()[len(nats.InboxPrefix):],
		Data:    m.Body,
		Header: nats.Header{
			"Nats-Schedule":        {"@at " + m.Due.UTC().Format(time.RFC3339Nano)},
			"Nats-Schedule-Target": {target},
		},
	}
}

func (p *natsProducer) Enqueue(ctx context.Context, m Message) error {
	_, err := p.s.js.PublishMsg(ctx, p.message(m))
	return err
}

func (p *natsProducer) EnqueueBatch(ctx context.Context, ms []Message) error {
	answers := make([]jetstream.PubAckFuture, len(ms))
	for i, m := range ms {
		a, err := p.s.js.PublishMsgAsync(p.message(m))
		if err != nil {
			return err
		}
		answers[i] = a
	}
	for _, a := range answers {
		select {
		case <-a.Ok():
		case err := <-a.Err():
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (*natsProducer) Close() error { return nil }
