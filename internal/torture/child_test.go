// SPDX-License-Identifier: Apache-2.0

package torture

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/internal/history"
	"github.com/bidemq/bide/pebblestore"
	"github.com/bidemq/bide/redisstore"
	"github.com/bidemq/bide/storage"
)

// The test binary is also the process that is tortured: these variables tell it so.
const (
	envName  = "BIDE_TORTURE_NAME"
	envStore = "BIDE_TORTURE_STORE"
	envSeed  = "BIDE_TORTURE_SEED"
	envPace  = "BIDE_TORTURE_PACE" // how many times slower than at full speed
)

// inDirectory is how a directory is named, beside the URLs of Redis.
const inDirectory = "directory:"

// openStore opens what a name says. A directory may still be held by a process that was killed.
func openStore(ctx context.Context, name string) (storage.Engine, error) {
	dir, ok := strings.CutPrefix(name, inDirectory)
	if !ok {
		return redisstore.OpenWith(ctx, name, redisstore.Options{Logger: slog.New(slog.DiscardHandler)})
	}
	for end := time.Now().Add(5 * time.Second); ; pause(ctx, 10*time.Millisecond) {
		store, err := pebblestore.Open(dir, pebblestore.Options{Logger: slog.New(slog.DiscardHandler)})
		if err == nil {
			return store, nil
		}
		if time.Now().After(end) || ctx.Err() != nil {
			return nil, err
		}
	}
}

// child produces and consumes until it is told to end, or killed. It prints its history.
func child(name string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	seed, err := strconv.ParseUint(os.Getenv(envSeed), 10, 64)
	if err != nil {
		return err
	}
	pace, err := strconv.Atoi(os.Getenv(envPace))
	if err != nil {
		return err
	}
	signal.Ignore(syscall.SIGXFSZ) // a file that may not grow is an error of the write
	engine, err := openStore(ctx, os.Getenv(envStore))
	if err != nil {
		return nil // the server may be down: another process comes
	}
	recorder := history.NewRecorder(name, os.Stdout)
	recorded := recorder.Engine(engine)
	if os.Getenv(envCalm) != "" {
		err := consumeCalmly(ctx, recorded, name, rand.New(rand.NewPCG(seed, 9)))
		return errors.Join(err, recorder.Err(), engine.Close())
	}
	var parts sync.WaitGroup
	for i := range uint64(2) {
		parts.Go(func() { produce(ctx, recorded, rand.New(rand.NewPCG(seed, i)), pace) })
	}
	err = consume(ctx, recorded, name, rand.New(rand.NewPCG(seed, 9)), true)
	parts.Wait()
	return errors.Join(err, recorder.Err(), engine.Close())
}

// produce enqueues, cancels and reschedules. Few ids meet often; what fails is in the history.
func produce(ctx context.Context, engine storage.Engine, rnd *rand.Rand, pace int) {
	for n := 0; ctx.Err() == nil; n++ {
		recs := make([]storage.Record, 1+rnd.IntN(5))
		for i := range recs {
			recs[i] = storage.Record{
				ID:          fmt.Sprint(rnd.IntN(400)),
				Body:        fmt.Appendf(nil, "%d of %d", i, n),
				Delay:       time.Duration(rnd.IntN(2)*rnd.IntN(500)) * time.Millisecond,
				MaxAttempts: rnd.IntN(6),
				OnLive:      []storage.OnLive{storage.Keep, storage.Keep, storage.Replace, storage.Rerun}[rnd.IntN(4)],
				DedupFor:    time.Duration(rnd.IntN(2)) * 300 * time.Millisecond,
			}
			if rnd.IntN(3) > 0 {
				recs[i].Key = fmt.Sprint("key", rnd.IntN(8))
			}
		}
		_, _ = engine.Enqueue(ctx, time.Time{}, queue, recs)
		id := fmt.Sprint(rnd.IntN(400))
		switch rnd.IntN(20) {
		case 0:
			_ = engine.Cancel(ctx, time.Time{}, queue, id, rnd.IntN(2) == 0)
		case 1:
			_, _ = engine.Edit(ctx, time.Time{}, queue, id, storage.Edit{Delay: new(time.Duration(rnd.IntN(300)) * time.Millisecond)})
		}
		pause(ctx, time.Duration(pace*(2+rnd.IntN(10)))*time.Millisecond)
	}
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// consume handles messages, alone and in batches of a key, with every outcome if it is wild. One
// that is not acks.
func consume(ctx context.Context, engine storage.Engine, name string, rnd *rand.Rand, wild bool) error {
	client := bide.NewClient(engine, bide.ClientConfig{Logger: slog.New(slog.DiscardHandler)})
	consumer := bide.NewConsumer(client, bide.ConsumerConfig{
		Concurrency: 8, Lease: lease, Name: name, Grace: time.Second, DrainTimeout: time.Second,
		Backoff: func(int) time.Duration { return 100 * time.Millisecond },
	})
	var mu sync.Mutex
	handle := func(ctx context.Context) error {
		if !wild {
			return nil
		}
		mu.Lock()
		long, outcome := time.Duration(rnd.IntN(15))*time.Millisecond, rnd.IntN(20)
		mu.Unlock()
		pause(ctx, long)
		switch outcome {
		case 0:
			return errors.New("failed")
		case 1:
			return bide.Snooze(50 * time.Millisecond)
		case 2:
			return bide.DeadLetter(errors.New("hopeless"))
		default:
			return nil
		}
	}
	consumer.HandlePart(storage.Scope{Queue: queue, Keys: []string{"", "key0", "key1"}},
		func(ctx context.Context, _ *bide.Delivery[[]byte]) error { return handle(ctx) })
	consumer.HandleBatch(storage.Scope{Queue: queue, Except: []string{"", "key0", "key1"}},
		func(ctx context.Context, _ string, ds []*bide.Delivery[[]byte]) error {
			for _, d := range ds {
				d.Decide(handle(ctx))
			}
			return nil
		}, bide.BatchConfig{Max: 10})
	err := consumer.Run(ctx)
	if wild {
		return nil // a server that is down at the end leaves messages behind
	}
	return err
}
