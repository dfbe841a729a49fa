// SPDX-License-Identifier: Apache-2.0

package bide_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/storage"
)

// More calls of an engine.
const (
	acquire = "acquire"
	renew   = "renew"
	release = "release"
	bound   = "topic"
)

func (f *faulty) Acquire(ctx context.Context, now time.Time, r storage.LockRequest) (storage.Lock, error) {
	after, err := f.begin(ctx, acquire, 1)
	if err != nil {
		return storage.Lock{}, err
	}
	l, err := f.Engine.Acquire(ctx, now, r)
	if lost := after(); lost != nil {
		return storage.Lock{}, lost
	}
	return l, err
}

func (f *faulty) Renew(ctx context.Context, now time.Time, r storage.LockReceipt, ttl time.Duration) (storage.Lock, error) {
	after, err := f.begin(ctx, renew, 1)
	if err != nil {
		return storage.Lock{}, err
	}
	l, err := f.Engine.Renew(ctx, now, r, ttl)
	if lost := after(); lost != nil {
		return storage.Lock{}, lost
	}
	return l, err
}

func (f *faulty) Release(ctx context.Context, now time.Time, r storage.LockReceipt) error {
	after, err := f.begin(ctx, release, 1)
	if err != nil {
		return err
	}
	err = f.Engine.Release(ctx, now, r)
	if lost := after(); lost != nil {
		return lost
	}
	return err
}

// A lock is kept however long its holder takes, and is free at once after Unlock.
func TestLockIsKeptUntilUnlock(t *testing.T) {
	bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) {
		l, err := client.TryLock(t.Context(), "report", bide.LockConfig{TTL: 10 * time.Second})
		assert.NoError(t, err)
		assert.Equal(t, l.Name(), "report")
		for range 20 {
			pass(17 * time.Second)
			_, err := client.TryLock(t.Context(), "report", bide.LockConfig{})
			assert.ErrorIs(t, err, bide.ErrLocked)
			locked, ok := errors.AsType[*storage.LockedError](err)
			assert.True(t, ok && locked.Left() > 5*time.Second, err)
		}
		assert.NoError(t, l.Context().Err())
		assert.NoError(t, l.Unlock(t.Context()))
		assert.ErrorIs(t, l.Context().Err(), context.Canceled)
		assert.NoError(t, l.Unlock(t.Context()), "all calls return what the first one did")
		next, err := client.TryLock(t.Context(), "report", bide.LockConfig{})
		assert.NoError(t, err)
		assert.True(t, next.Token() > l.Token())
		assert.True(t, bide.LockOf(next.Context()) == next && bide.LockOf(t.Context()) == nil)
		assert.NoError(t, next.Unlock(t.Context()))
	})
}

// A Lock waits for the release, and its TTL counts from when it got the lock.
func TestLockWaits(t *testing.T) {
	bubble(t, func(t *testing.T, engine *faulty, client *bide.Client) {
		first, err := client.Lock(t.Context(), "a", bide.LockConfig{TTL: 10 * time.Second})
		assert.NoError(t, err)
		began := time.Now()
		got := make(chan *bide.Lock, 1)
		go func() {
			l, err := client.Lock(t.Context(), "a", bide.LockConfig{TTL: 10 * time.Second})
			assert.NoError(t, err)
			got <- l
		}()
		_, err = client.Lock(t.Context(), "a", bide.LockConfig{Wait: time.Second})
		assert.ErrorIs(t, err, bide.ErrLocked)
		assert.Equal(t, time.Since(began), time.Second)
		pass(59 * time.Second)
		assert.NoError(t, first.Unlock(t.Context()))
		l := <-got
		assert.Equal(t, time.Since(began), time.Minute)
		engine.fails(renew, storage.ErrUnavailable)
		<-l.Context().Done()
		assert.Equal(t, time.Since(began), time.Minute+8750*time.Millisecond)
		engine.heals(renew)
		assert.ErrorIs(t, l.Unlock(t.Context()), bide.ErrLockLost)
	})
}

// While renewing fails, the holder's context ends before somebody else can have the lock.
func TestLostLockEndsItsContextInTime(t *testing.T) {
	for name, fail := range map[string]func(*faulty){
		"the engine is unavailable":     func(f *faulty) { f.fails(renew, storage.ErrUnavailable) },
		"the engine answers nobody":     func(f *faulty) { f.set(renew, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, nil) },
		"answers take too long":         func(f *faulty) { f.takes(renew, 20*time.Second) },
		"the engine answers with a bug": func(f *faulty) { f.fails(renew, errors.New("bug")) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, engine *faulty, client *bide.Client) {
				ttl := 24 * time.Second
				l, err := client.TryLock(t.Context(), "a", bide.LockConfig{TTL: ttl})
				assert.NoError(t, err)
				fail(engine)
				var next *bide.Lock
				other := make(chan time.Time, 1)
				go func() {
					next, err = client.Lock(t.Context(), "a", bide.LockConfig{})
					other <- time.Now()
				}()
				<-l.Context().Done()
				ended := time.Now()
				assert.ErrorIs(t, context.Cause(l.Context()), bide.ErrLockLost)
				engine.heals(renew)
				taken := <-other
				assert.NoError(t, err)
				assert.True(t, next.Token() > l.Token())
				assert.NoError(t, next.Unlock(t.Context()))
				assert.True(t, ended.Before(taken), "ended", ended, "taken", taken)
				assert.ErrorIs(t, l.Unlock(t.Context()), bide.ErrLockLost)
			})
		})
	}
}

// One renewal that fails costs nothing.
func TestLockSurvivesAFailedRenewal(t *testing.T) {
	bubble(t, func(t *testing.T, engine *faulty, client *bide.Client) {
		l, err := client.TryLock(t.Context(), "a", bide.LockConfig{TTL: 12 * time.Second})
		assert.NoError(t, err)
		pass(3 * time.Second)
		engine.fails(renew, storage.ErrUnavailable)
		pass(6 * time.Second)
		engine.heals(renew)
		pass(time.Minute)
		assert.NoError(t, l.Context().Err())
		assert.NoError(t, l.Unlock(t.Context()))
	})
}

// Answers that get lost are asked for again: the lock belongs to who asked, and is given up once.
func TestLockSurvivesLostAnswers(t *testing.T) {
	bubble(t, func(t *testing.T, engine *faulty, client *bide.Client) {
		engine.loses(acquire, 2)
		l, err := client.TryLock(t.Context(), "a", bide.LockConfig{TTL: 10 * time.Second})
		assert.NoError(t, err)
		engine.loses(release, 2)
		assert.NoError(t, l.Unlock(t.Context()))
		engine.fails(acquire, storage.ErrUnavailable)
		_, err = client.TryLock(t.Context(), "a", bide.LockConfig{})
		assert.ErrorIs(t, err, bide.ErrUnavailable)
	})
}

// An Unlock whose context has ended is heard all the same.
func TestUnlockAfterItsContext(t *testing.T) {
	bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) {
		ctx, cancel := context.WithCancel(t.Context())
		l, err := client.TryLock(ctx, "a", bide.LockConfig{})
		assert.NoError(t, err)
		cancel()
		assert.ErrorIs(t, context.Cause(l.Context()), context.Canceled)
		pass(time.Hour) // it is kept, as nobody has said that the work is over
		_, err = client.TryLock(t.Context(), "a", bide.LockConfig{})
		assert.ErrorIs(t, err, bide.ErrLocked)
		assert.NoError(t, l.Unlock(ctx))
		next, err := client.TryLock(t.Context(), "a", bide.LockConfig{})
		assert.NoError(t, err)
		assert.NoError(t, next.Unlock(t.Context()))
		_, err = client.Lock(ctx, "a", bide.LockConfig{})
		assert.ErrorIs(t, err, context.Canceled)
	})
}

func TestLockRefusesWhatCannotWork(t *testing.T) {
	bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) {
		for _, c := range []struct {
			name   string
			config bide.LockConfig
		}{
			{"", bide.LockConfig{}},
			{"a\nb", bide.LockConfig{}},
			{"a", bide.LockConfig{TTL: time.Millisecond}},
			{"a", bide.LockConfig{TTL: storage.MaxLease + 1}},
			{"a", bide.LockConfig{Wait: -1}},
		} {
			_, err := client.Lock(t.Context(), c.name, c.config)
			assert.ErrorIs(t, err, bide.ErrInvalid)
		}
	})
}

// However long somebody is ready to wait, he gets what is free.
func TestLockWithAVeryLongWait(t *testing.T) {
	bubble(t, func(t *testing.T, _ *faulty, client *bide.Client) {
		l, err := client.Lock(t.Context(), "free", bide.LockConfig{Wait: storage.Forever - 1})
		assert.NoError(t, err)
		assert.NoError(t, l.Unlock(t.Context()))
	})
}
