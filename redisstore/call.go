// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/bidemq/bide/storage"
)

const (
	patience   = 10 * time.Second // that a call has with a server that fails over
	firstPause = 10 * time.Millisecond
	longPause  = time.Second
)

// run runs a script on a queue, or a shard of one. What may be sent again is, with pauses, until it succeeds, the
// context ends or patience does.
func (s *Store) run(ctx context.Context, sc *script, at shard, args ...string) (rueidis.RedisMessage, error) {
	queue := at.name
	var none rueidis.RedisMessage
	if err := s.open(ctx); err != nil {
		return none, err
	}
	if !sc.fits(len(args)) {
		return none, fmt.Errorf("redisstore: %q: %w", queue, &ScriptError{sc.name, fmt.Errorf("%d arguments", len(args))})
	}
	ctx, cancel := s.within(ctx)
	defer cancel()
	args[0] = at.mark(args[0])
	keys := s.keysOf(queue)
	if _, whole := s.whole.Load(queue); !whole && sc.plain != nil {
		m, err := at.again(ctx, sc.repeat, func() (rueidis.RedisMessage, error) {
			return s.exec(ctx, sc.plain, keys[:plainStructures], args)
		})
		if !isWhole(err) {
			return m, s.failed(ctx, err, sc, at)
		}
		s.whole.Store(queue, struct{}{}) // nothing was done, and what a queue has once it keeps
	}
	m, err := at.again(ctx, sc.repeat, func() (rueidis.RedisMessage, error) {
		return s.exec(ctx, sc, keys, args)
	})
	return m, s.failed(ctx, err, sc, at)
}

// failed gives the error of a script its category.
func (s *Store) failed(ctx context.Context, err error, sc *script, at shard) error {
	if err == nil {
		return nil
	}
	if other := otherLayout(err, at); other != nil {
		return other
	}
	return s.wrap(ctx, err, sc.name, at.name)
}

// isWhole says whether a plain script has met a queue that it is not enough for.
func isWhole(err error) bool {
	e, ok := rueidis.IsRedisErr(err)
	return ok && strings.HasPrefix(e.Error(), "BIDEWHOLE")
}

// again calls do once if that is all the patience there is.
func (at *shard) again(ctx context.Context, repeat bool, do func() (rueidis.RedisMessage, error)) (rueidis.RedisMessage, error) {
	if at.brief {
		return do()
	}
	return again(ctx, repeat, do)
}

// again calls do until it succeeds or there is no point in more.
func again[T any](ctx context.Context, repeat bool, do func() (T, error)) (T, error) {
	began := time.Now()
	for pause := firstPause; ; pause = min(2*pause, longPause) {
		v, err := do()
		if err == nil || rueidis.IsRedisNil(err) || ctx.Err() != nil {
			return v, err
		}
		if f := faultOf(err); f != refused && (f != unknown || !repeat || isTooFew(err)) {
			return v, err
		}
		pause := pause/2 + rand.N(pause)
		if time.Since(began)+pause > patience {
			return v, err
		}
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return v, err
		}
	}
}

// fault is what an error says about a call.
type fault uint8

const (
	other   fault = iota // answered, and would be answered the same again
	refused              // nothing was done, later it may be
	unknown              // nobody knows whether it was done
	full                 // nothing was done for want of memory
	format               // the queue is of another version
)

// refusals are the answers of a server that has not begun the script, or has undone nothing because
// it refused the first write.
var refusals = [...]string{
	"LOADING", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "MISCONF", "BUSY", "NOREPLICAS", "MOVED", "ASK", "NOSCRIPT",
}

func faultOf(err error) fault {
	if answer, ok := rueidis.IsRedisErr(err); ok {
		text := answer.Error()
		// A script's answer is wrapped in words about the place, which differ between versions.
		text = strings.TrimPrefix(text, "ERR ")
		for _, r := range refusals {
			if strings.HasPrefix(text, r+" ") || strings.Contains(text, "-"+r+" ") {
				return refused
			}
		}
		switch {
		case strings.HasPrefix(text, "OOM ") || strings.Contains(text, "-OOM "):
			return full
		case strings.HasPrefix(text, "BIDEFORMAT"):
			return format
		case strings.HasPrefix(text, "UNKILLABLE"), strings.HasPrefix(text, "max number of clients"):
			return refused
		}
		return other
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return refused
	}
	return unknown
}

// wrap gives an error its category. Errors of the caller's context pass through untouched.
func (s *Store) wrap(ctx context.Context, err error, what, queue string) error {
	if err == nil {
		return nil
	}
	if rueidis.IsRedisNil(err) {
		return fmt.Errorf("redisstore: %s %q: %w", what, queue, &ScriptError{what, err})
	}
	if ctx.Err() != nil {
		if cause := context.Cause(ctx); errors.Is(cause, storage.ErrClosed) {
			return fmt.Errorf("redisstore: %s %q: %w", what, queue, storage.ErrClosed)
		}
		return ctx.Err()
	}
	switch faultOf(err) {
	case refused, unknown:
		return fmt.Errorf("redisstore: %s %q at %s: %w: %w", what, queue, s.address, storage.ErrUnavailable, err)
	case full:
		return fmt.Errorf("redisstore: %s %q: %w: %w", what, queue, storage.ErrFull, err)
	case format:
		return fmt.Errorf("redisstore: queue %q: %w: %w", queue, storage.ErrFormat, err)
	default:
		return fmt.Errorf("redisstore: queue %q: %w", queue, &ScriptError{what, err})
	}
}

// milli returns an instant as the scripts want it, "" for the engine's own clock.
func milli(now time.Time) string {
	if now.IsZero() {
		return ""
	}
	return strconv.FormatInt(now.UnixMilli(), 10)
}

// length returns a duration in milliseconds, rounded up.
func length(d time.Duration) int64 { return storage.Millis(d).Milliseconds() }

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

// instant is the inverse of milli.
func instant(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

// ints reads a reply of numbers.
func ints(ms []rueidis.RedisMessage) ([]int64, error) {
	out := make([]int64, len(ms))
	for i := range ms {
		n, err := ms[i].AsInt64()
		if err != nil {
			return nil, err
		}
		out[i] = n
	}
	return out, nil
}
