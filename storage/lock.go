// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Failures of locks.
var (
	// ErrLocked: somebody else holds the lock. The error is a [LockedError].
	ErrLocked = errors.New("locked by somebody else")
	// ErrLockLost: the lock has ended, or was released; somebody else may hold it.
	ErrLockLost = errors.New("lock lost")
)

// Locker keeps locks by name, apart from the queues. A name is taken like an id, see [CheckID]; so
// is an owner, which is whatever tells the holders of a lock apart.
type Locker interface {
	// Acquire takes a lock that nobody holds. The owner that holds it already gets the lock that he
	// has, with the same token, to end at now plus TTL: so a call whose answer was lost may be
	// repeated, and two holders need two owners.
	//
	// While somebody else holds the lock, Acquire waits as long as the request says, and then
	// returns a [LockedError] that names the latest holder. Nobody is served before his turn on
	// purpose, but who asks at the moment of a release may be faster than who waits. An error of the
	// context, and ErrUnavailable, leave open whether the owner holds the lock. R16
	Acquire(ctx context.Context, now time.Time, r LockRequest) (Lock, error)

	// Renew makes a lock end at now plus ttl. ErrLockLost means that it was lost before, and that
	// nothing has changed. R16
	Renew(ctx context.Context, now time.Time, r LockReceipt, ttl time.Duration) (Lock, error)

	// Release gives a lock up and wakes who waits for it. ErrLockLost means that it was lost before,
	// and that nothing has changed; a Release that is repeated may so report as lost what it gave up
	// itself. R16
	Release(ctx context.Context, now time.Time, r LockReceipt) error
}

// LockRequest asks for a lock.
type LockRequest struct {
	Name  string        // of the lock
	Owner string        // unique for each holder
	TTL   time.Duration // 1 ms to MaxLease, rounded up
	Wait  time.Duration // at most, in real time; 0 is not at all, Forever until ctx ends; with an explicit now it is 0
}

// Lock is a lock that somebody holds, until the instant Until and not at it.
type Lock struct {
	Name  string
	Owner string
	Token int64     // grows with every holder of any lock, see R16
	Now   time.Time // the engine's instant of the call
	Until time.Time
}

// Receipt proves the holding of the lock.
func (l *Lock) Receipt() LockReceipt {
	return LockReceipt{Name: l.Name, Owner: l.Owner, Token: l.Token}
}

// LockReceipt proves that somebody has acquired a lock. It is comparable.
type LockReceipt struct {
	Name  string
	Owner string
	Token int64
}

// LockedError tells who has a lock that was asked for.
type LockedError struct {
	Name  string
	Owner string
	Now   time.Time // the engine's instant of the call
	Until time.Time // when the lock ends unless it is renewed
}

// Error tells how long the holder may keep the lock.
func (e *LockedError) Error() string {
	return fmt.Sprintf("lock %q: %v: %s has it for another %s", e.Name, ErrLocked, e.Owner, e.Left())
}

// Unwrap returns ErrLocked.
func (e *LockedError) Unwrap() error { return ErrLocked }

// Left is how long the holder may keep the lock without renewing it, from Now on.
func (e *LockedError) Left() time.Duration { return e.Until.Sub(e.Now) }

// Check looks at every field, for a call at an instant.
func (r *LockRequest) Check(now time.Time) error {
	if err := CheckNow(now); err != nil {
		return err
	}
	if err := checkLock(r.Name, r.Owner); err != nil {
		return err
	}
	if err := CheckTTL(r.TTL); err != nil {
		return err
	}
	if r.Wait != 0 && !now.IsZero() {
		return fmt.Errorf("%w: an explicit instant does not wait", ErrInvalid)
	}
	return checkDuration("wait", r.Wait, 0, Forever)
}

// Check looks at the name and the owner, for a call at an instant.
func (r *LockReceipt) Check(now time.Time) error {
	if err := CheckNow(now); err != nil {
		return err
	}
	return checkLock(r.Name, r.Owner)
}

// CheckTTL looks at how long a lock is to be held.
func CheckTTL(d time.Duration) error { return checkDuration("lock for", d, time.Millisecond, MaxLease) }

func checkLock(name, owner string) error {
	if name == "" {
		return fmt.Errorf("%w: lock name is empty", ErrInvalid)
	}
	if err := checkText("lock name", name); err != nil {
		return err
	}
	if owner == "" {
		return fmt.Errorf("%w: owner of lock %q is empty", ErrInvalid, name)
	}
	return checkText("owner", owner)
}
