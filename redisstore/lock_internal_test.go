// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/internal/redistest"
	"github.com/bidemq/bide/storage"
)

func apartScripts() []*script {
	return []*script{lockAcquireScript, lockRenewScript, lockReleaseScript, lockLeaveScript, topicScript, topicsScript}
}

// checkApart fails unless the header of a script says what it is called with.
func checkApart(t *testing.T, s *script) {
	t.Helper()
	want := header{keys: 1, args: s.args, each: s.each, returns: true}
	if len(s.parts) > 0 {
		want.keys = len(lockStructures)
	}
	assert.Equal(t, parseHeader(t, part(t, s.name)) == want, true, s.name, parseHeader(t, part(t, s.name)), want)
	assert.True(t, strings.HasPrefix(part(t, s.name), "-- "+s.name+" "), s.name)
	assert.Equal(t, parseHeader(t, part(t, "lock")).keys, len(lockStructures))
}

// keep acquires a lock at once.
func keep(t *testing.T, s *Store, name, owner string, ttl time.Duration) storage.Lock {
	t.Helper()
	l, err := s.Acquire(t.Context(), time.Time{}, storage.LockRequest{Name: name, Owner: owner, TTL: ttl})
	assert.NoError(t, err)
	return l
}

// await starts an Acquire that waits for a lock. It has entered Redis when await returns.
func await(ctx context.Context, t *testing.T, server *redistest.Server, s *Store, name string, waiters int) <-chan error {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		_, err := s.Acquire(ctx, time.Time{}, storage.LockRequest{
			Name: name, Owner: fmt.Sprint("waiter ", waiters), TTL: time.Hour, Wait: storage.Forever,
		})
		done <- err
	}()
	redistest.Until(t, "the call waits", func() bool {
		return server.Do(t, "ZCARD", "bide:{default/locks}:waiting") == fmt.Sprint(waiters)
	})
	// Once notices are heard it has asked again, and is entered still.
	redistest.Until(t, "notices are heard", func() bool {
		s.watches.mu.Lock()
		defer s.watches.mu.Unlock()
		return s.watches.up
	})
	return done
}

// within fails unless a wait ends well before a process would ask again by itself.
func within(t *testing.T, done <-chan error) {
	t.Helper()
	select {
	case err := <-done:
		assert.NoError(t, err)
	case <-time.After(lookAgain * 4 / 5):
		t.Fatal("slept through the release")
	}
}

// R16: what is left of locks that were released, or have ended, and of those who waited, is the last
// token.
func TestLocksLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := openQuiet(t, server.URL())
	var last storage.Lock
	for i := range 50 {
		last = keep(t, s, fmt.Sprint("lock ", i), "a", 100*time.Millisecond)
		if i%2 == 0 {
			_ = s.Release(t.Context(), time.Time{}, last.Receipt())
		}
	}
	held := keep(t, s, "held", "a", time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	gone := await(ctx, t, server, s, "held", 1)
	cancel()
	assert.ErrorIs(t, <-gone, context.Canceled)
	assert.NoError(t, s.Release(t.Context(), time.Time{}, held.Receipt()))
	redistest.Until(t, "all locks are gone", func() bool {
		_ = s.Release(t.Context(), time.Time{}, storage.LockReceipt{Name: "other", Owner: "a"})
		return server.Do(t, "KEYS", "*") == "bide:{default/locks}:state"
	})
	assert.Equal(t, server.Do(t, "HLEN", "bide:{default/locks}:state"), "3")
}

// R16: those who wait in several processes are served in order, one by one.
func TestOneReleaseWakesOneProcess(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	holder := openQuiet(t, server.URL())
	held := keep(t, holder, "a", "holder", time.Hour)
	first := await(t.Context(), t, server, openQuiet(t, server.URL()), "a", 1)
	second := await(t.Context(), t, server, openQuiet(t, server.URL()), "a", 2)
	assert.NoError(t, holder.Release(t.Context(), time.Time{}, held.Receipt()))
	within(t, first)
	_, err := holder.Acquire(t.Context(), time.Time{}, storage.LockRequest{Name: "a", Owner: "x", TTL: time.Hour})
	assert.ErrorIs(t, err, storage.ErrLocked)
	assert.Equal(t, server.Do(t, "ZCARD", "bide:{default/locks}:waiting"), "1")
	select {
	case err := <-second:
		t.Fatal("two hold the lock:", err)
	default:
	}
}

// R16: a process that died while it waited swallows no release.
func TestTheDeadSwallowNoRelease(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := openQuiet(t, server.URL())
	held := keep(t, s, "a", "holder", time.Hour)
	for i := range 5 { // they came first
		server.Do(t, "EVAL", `return redis.call("ZADD", KEYS[1], 0, "a\0" .. string.format("%015d", ARGV[1]) .. "\0bide:default:dead 1")`,
			"1", "bide:{default/locks}:waiting", fmt.Sprint(i))
	}
	living := await(t.Context(), t, server, s, "a", 6)
	assert.NoError(t, s.Release(t.Context(), time.Time{}, held.Receipt()))
	within(t, living)
	assert.Equal(t, server.Do(t, "ZCARD", "bide:{default/locks}:waiting"), "0")
}

// R16: who waits gets the lock though the script cache was emptied and connections were cut.
func TestWaitForALockSurvivesCuts(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for _, cut := range [][]string{{"SCRIPT", "FLUSH"}, {"CLIENT", "KILL", "TYPE", "normal"}, {"CLIENT", "KILL", "TYPE", "pubsub"}} {
		name := strings.Join(cut, " ")
		s, holder := openQuiet(t, server.URL()), openQuiet(t, server.URL())
		held := keep(t, holder, name, "holder", time.Hour)
		waits := await(t.Context(), t, server, s, name, 1)
		server.Do(t, cut...)
		err := holder.Release(t.Context(), time.Time{}, held.Receipt())
		if errors.Is(err, storage.ErrUnavailable) { // cut while it was sent: a release is not repeated by itself
			err = holder.Release(t.Context(), time.Time{}, held.Receipt())
		}
		assert.True(t, err == nil || errors.Is(err, storage.ErrLeaseLost), name, err)
		select {
		case err := <-waits:
			assert.NoError(t, err, name)
		case <-time.After(15 * time.Second):
			t.Fatal("slept through the release after", name)
		}
		redistest.Until(t, "nobody waits", func() bool { return server.Do(t, "ZCARD", "bide:{default/locks}:waiting") == "0" })
	}
}

// R5 R16: a token is never used twice, also by a server that has lost its locks.
func TestLockTokensGrowOverLoss(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := openQuiet(t, server.URL())
	before := keep(t, s, "a", "x", time.Hour)
	server.Do(t, "FLUSHALL")
	after := keep(t, s, "a", "x", time.Hour)
	assert.True(t, after.Token > before.Token, after.Token, before.Token)
}

// R2 R16: the clock of locks does not run backwards by a small step, and follows a large one.
func TestLockClockDoesNotRunBackwards(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := openQuiet(t, server.URL())
	seen := keep(t, s, "a", "x", time.Hour).Now
	ahead := seen.Add(8 * time.Second) // as a primary may have had it that failed
	server.Do(t, "HSET", "bide:{default/locks}:state", "c", fmt.Sprint(ahead.UnixMilli()))
	assert.Equal(t, keep(t, s, "b", "x", time.Hour).Now, ahead)
	server.Do(t, "HSET", "bide:{default/locks}:state", "c", fmt.Sprint(ahead.Add(time.Hour).UnixMilli()))
	followed := keep(t, s, "c", "x", time.Hour).Now
	assert.True(t, followed.Before(ahead) && !followed.Before(seen), followed)
}

// A full server lends no locks, and takes back those that it has lent.
func TestLocksOnAFullServer(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := openQuiet(t, server.URL())
	held := keep(t, s, "a", "x", time.Hour)
	server.Do(t, "CONFIG", "SET", "maxmemory", "1")
	_, err := s.Acquire(t.Context(), time.Time{}, storage.LockRequest{Name: "b", Owner: "x", TTL: time.Hour})
	assert.ErrorIs(t, err, storage.ErrFull)
	_, err = s.Topic(t.Context(), "paid", storage.TopicEdit{Bind: []string{"mail"}})
	assert.ErrorIs(t, err, storage.ErrFull)
	_, err = s.Renew(t.Context(), time.Time{}, held.Receipt(), time.Hour)
	assert.NoError(t, err)
	assert.NoError(t, s.Release(t.Context(), time.Time{}, held.Receipt()))
}

// Locks and bindings of another format are left alone.
func TestLocksOfAnotherFormat(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := openQuiet(t, server.URL())
	server.Do(t, "HSET", "bide:{default/locks}:state", "v", "9")
	_, err := s.Acquire(t.Context(), time.Time{}, storage.LockRequest{Name: "a", Owner: "x", TTL: time.Hour})
	assert.ErrorIs(t, err, storage.ErrFormat)
}

// How long it takes from a release to the end of the Acquire that waits in another process.
func BenchmarkLockHandOver(b *testing.B) {
	server := redistest.Start(b)
	here, there := openQuiet(b, server.URL()), openQuiet(b, server.URL())
	held, err := here.Acquire(b.Context(), time.Time{}, storage.LockRequest{Name: "a", Owner: "0", TTL: time.Hour})
	var took time.Duration
	for i := 1; b.Loop(); i++ {
		if err != nil {
			b.Fatal(err)
		}
		type got struct {
			storage.Lock
			err error
			at  time.Time
		}
		waits := make(chan got, 1)
		go func() {
			l, err := there.Acquire(b.Context(), time.Time{}, storage.LockRequest{
				Name: "a", Owner: fmt.Sprint(i), TTL: time.Hour, Wait: storage.Forever,
			})
			waits <- got{l, err, time.Now()}
		}()
		redistest.Until(b, "the call waits", func() bool {
			n, _ := here.client.Do(b.Context(), here.client.B().Zcard().Key("bide:{default/locks}:waiting").Build()).AsInt64()
			return n == 1
		})
		began := time.Now()
		if err := here.Release(b.Context(), time.Time{}, held.Receipt()); err != nil {
			b.Fatal(err)
		}
		g := <-waits
		held, err = g.Lock, g.err
		took += g.at.Sub(began)
		here, there = there, here
	}
	b.ReportMetric(float64(took.Microseconds())/float64(b.N), "µs/hand-over")
}
