// SPDX-License-Identifier: Apache-2.0

package bide

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/bidemq/bide/storage"
)

// Failures of locks.
var (
	// ErrLocked: somebody else holds the lock. The error is a storage.LockedError, which says who
	// and for how long.
	ErrLocked = storage.ErrLocked
	// ErrLockLost: the lock was not renewed in time, and somebody else may hold it. It is also the
	// cause that ends the context of a lock that is lost.
	ErrLockLost = storage.ErrLockLost
)

const (
	defaultTTL = 30 * time.Second
	leastTTL   = 100 * time.Millisecond
	// afterwards is what an Unlock still has whose context has ended before it began.
	afterwards = time.Second
	// lateGrants bounds how often a lock is asked for whose answer comes too late to rely on.
	lateGrants = 5
)

// LockConfig of one holding of a lock. The zero value is usable.
type LockConfig struct {
	// TTL is how long the lock outlives a process that has vanished: 100 ms to storage.MaxLease, 0
	// is 30 s. A lock that is held is renewed when a third of it has passed.
	TTL time.Duration
	// Wait bounds how long [Client.Lock] waits; 0 is until ctx ends.
	Wait time.Duration
}

// Lock is the right of one holder to do something alone, while its Context lasts. It is kept until
// Unlock, also after the context that it was asked for with has ended. Its methods may be called
// from many goroutines.
type Lock struct {
	client  *Client
	receipt storage.LockReceipt
	ttl     time.Duration

	ctx    context.Context // of the holder
	cancel context.CancelCauseFunc
	stop   context.CancelFunc // ends the renewing
	done   chan struct{}      // closed when nothing renews any more

	once sync.Once
	err  error // of Unlock
}

// TryLock takes a lock if nobody holds it, and otherwise returns ErrLocked at once. A name is made
// like an ID. One holding knows nothing of another: locks are not reentrant.
//
// While the engine is unavailable the call is repeated, as long as ctx and [ClientConfig.RepeatFor]
// allow. After ErrUnavailable or an error of ctx the lock may be taken for its TTL.
func (c *Client) TryLock(ctx context.Context, name string, config LockConfig) (*Lock, error) {
	return c.lock(ctx, name, config, 0)
}

// Lock takes a lock as soon as nobody holds it. It waits until ctx ends, or for config.Wait, and
// then returns ErrLocked: a deadline of ctx would bound [Lock.Context] too.
func (c *Client) Lock(ctx context.Context, name string, config LockConfig) (*Lock, error) {
	wait := cmp.Or(config.Wait, storage.Forever)
	if wait > storage.MaxDelay {
		wait = storage.Forever // adding to it would go round
	}
	return c.lock(ctx, name, config, wait)
}

func (c *Client) lock(ctx context.Context, name string, config LockConfig, wait time.Duration) (*Lock, error) {
	ttl := cmp.Or(config.TTL, defaultTTL)
	if ttl < leastTTL {
		return nil, wrap(fmt.Errorf("%w: TTL %s is below %s", ErrInvalid, ttl, leastTTL), "lock", name)
	}
	if config.Wait < 0 {
		return nil, wrap(fmt.Errorf("%w: wait %s is negative", ErrInvalid, config.Wait), "lock", name)
	}
	r := storage.LockRequest{Name: name, Owner: c.newOwner(), TTL: ttl}
	held, sent, err := c.acquire(ctx, r, wait)
	if errors.Is(err, ErrLocked) {
		return nil, fmt.Errorf("bide: %w", err) // it names the lock itself
	}
	if err != nil {
		return nil, wrap(err, "lock", name)
	}
	l := &Lock{client: c, receipt: held.Receipt(), ttl: ttl, done: make(chan struct{})}
	l.ctx, l.cancel = context.WithCancelCause(context.WithValue(ctx, lockOf{}, l))
	keeping, stop := context.WithCancel(context.WithoutCancel(ctx))
	l.stop = stop
	go l.keep(keeping, sent)
	return l, nil
}

// newOwner names one holding, for people and for the engine.
func (c *Client) newOwner() string {
	host, err := os.Hostname()
	if err != nil || len(host) > storage.MaxID/2 {
		host = "unknown host"
	}
	return fmt.Sprintf("%s/%d/%s", host, os.Getpid(), c.newID())
}

// acquire asks for a lock, and says when the call was sent that the TTL counts from. A call that has
// waited does not tell when it got the lock, so it is asked again: the same owner gets the lock that
// he has, extended.
func (c *Client) acquire(ctx context.Context, r storage.LockRequest, wait time.Duration) (held storage.Lock, sent time.Time, err error) {
	began := time.Now()
	var failing time.Time
	for tries, late := 0, 0; ; {
		sent = time.Now()
		if r.Wait = wait; wait != storage.Forever {
			r.Wait = max(0, wait-sent.Sub(began))
		}
		var l storage.Lock
		ask := func(ctx context.Context) (err error) {
			l, err = c.engine.Acquire(ctx, time.Time{}, r)
			return err
		}
		if wait == storage.Forever {
			err = ask(ctx)
		} else {
			err = bounded(ctx, r.Wait+callPatience, ask)
		}
		switch {
		case err == nil && time.Since(sent) < r.TTL/8:
			return l, sent, nil
		case err == nil:
			held, tries, failing = l, 0, time.Time{}
			if late++; late <= lateGrants {
				continue
			}
			err = fmt.Errorf("%w: answers take longer than an eighth of the TTL", ErrUnavailable)
		case errors.Is(err, ErrUnavailable) && ctx.Err() == nil:
			if tries++; failing.IsZero() {
				failing = time.Now()
			}
			left := c.config.RepeatFor - time.Since(failing)
			if left > 0 && sleep(ctx, min(left, repeatAfter(tries))) == nil {
				continue
			}
		}
		if held.Token != 0 {
			_ = c.release(ctx, held.Receipt()) // what cannot be given back ends by itself
		}
		return held, sent, err
	}
}

// Name of the lock.
func (l *Lock) Name() string { return l.receipt.Name }

// Token is the fencing token of this holding: it grows with every holder. What the holder writes to
// can keep the highest token it has seen and refuse lower ones, so that a holder that has lost the
// lock without noticing changes nothing any more.
func (l *Lock) Token() int64 { return l.receipt.Token }

// Context ends with the context that the lock was asked for with, with Unlock, and, before somebody
// else can have it, when the lock is lost: then its cause is ErrLockLost. [LockOf] finds the lock in
// it.
func (l *Lock) Context() context.Context { return l.ctx }

type lockOf struct{}

// LockOf returns the lock that a context is of, nil if it is of none: in a handler behind
// [Exclusive], the lock that it runs under.
func LockOf(ctx context.Context) *Lock {
	l, _ := ctx.Value(lockOf{}).(*Lock)
	return l
}

// Unlock ends the lock's Context and gives the lock up, so that the next one who waits has it at
// once. ErrLockLost means that it was lost before. With another error it may be taken until the end
// of its TTL, and is not renewed. If ctx has ended already, Unlock still has a second. All calls
// return what the first one did.
func (l *Lock) Unlock(ctx context.Context) error {
	l.once.Do(func() {
		lost := errors.Is(context.Cause(l.ctx), ErrLockLost)
		l.cancel(nil)
		l.stop()
		<-l.done
		l.err = l.client.release(ctx, l.receipt)
		if l.err == nil && lost {
			l.err = ErrLockLost
		}
		l.err = wrap(l.err, "unlock", l.receipt.Name)
	})
	return l.err
}

// release gives a lock up, repeating that while the engine is unavailable.
func (c *Client) release(ctx context.Context, r storage.LockReceipt) error {
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), afterwards)
		defer cancel()
	}
	began := time.Now()
	for tries := 1; ; tries++ {
		err := bounded(ctx, callPatience, func(ctx context.Context) error { return c.engine.Release(ctx, time.Time{}, r) })
		if errors.Is(err, ErrLockLost) && tries > 1 {
			return nil // an earlier try was heard
		}
		left := c.config.RepeatFor - time.Since(began)
		if !errors.Is(err, ErrUnavailable) || left <= 0 || sleep(ctx, min(left, repeatAfter(tries))) != nil {
			return err
		}
	}
}
