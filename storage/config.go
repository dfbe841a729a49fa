// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"fmt"
	"time"
)

// QueueConfig is stored with a queue. Its zero value is the default.
type QueueConfig struct {
	Paused        bool          // accept and do not deliver
	ExpireIn      time.Duration // given at Enqueue to records without one, 0 is none
	MaxDeliveries int           // deliveries allowed per record, those that ended in a release included; 0 is no limit
	Shards        int           // parts that an engine over several servers spreads the queue over, see R20; 0 is one

	Ordered   bool          // keys are worked off in order, see R11
	KeyLimit  int           // records of one key leased at a time; 0 is no limit, and 1 where Ordered
	MinBatch  int           // records of a key that must be due before any is claimable; 0 and 1 hold nothing back, see R18
	Linger    time.Duration // how long the first of too few is held back; set exactly where MinBatch is above 1
	KeyIdle   time.Duration // the waiting records of a key expire when none has joined it for so long; 0 is never
	MaxLen    int           // waiting records that the queue accepts, 0 is no bound, see R12
	MaxPerKey int           // waiting records that a key accepts, 0 is no bound
	Overflow  Overflow      // what Enqueue does at a bound

	RetainFor   time.Duration // acknowledged records are kept as done for so long, 0 is no bound, see R19
	RetainCount int           // and so many of them, 0 is no bound
	RetainBytes int64         // and so many bytes of bodies and headers, 0 is no bound; none is kept where all three are 0
	DeadFor     time.Duration // dead records are kept for so long, 0 is for ever
	DeadCount   int           // and so many of them, 0 is no bound
	TellDead    bool          // records that die are Untold until Told names them
}

// Retains says whether acknowledged records are kept.
func (c *QueueConfig) Retains() bool {
	return c.RetainFor > 0 || c.RetainCount > 0 || c.RetainBytes > 0
}

// Overflow is what Enqueue does with a record that there is no room for.
type Overflow uint8

// The choices.
const (
	Refuse     Overflow = iota // the record is refused with ErrFull
	DropOldest                 // the oldest waiting records make room
)

// ConfigEdit changes the fields that are set.
type ConfigEdit struct {
	Paused        *bool
	ExpireIn      *time.Duration // 0 to MaxDelay
	MaxDeliveries *int           // 0 to MaxAttempts
	Shards        *int           // 0 to MaxShards, 1 is stored as 0; ErrConflict while too many changes of it are under way

	Ordered   *bool          // ErrConflict while a record with a key is waiting or leased
	KeyLimit  *int           // 0 to MaxBatch, at most 1 where Ordered, not below MinBatch otherwise
	MinBatch  *int           // 0 to MaxBatch
	Linger    *time.Duration // 0 to MaxDelay
	KeyIdle   *time.Duration // 0 to MaxDelay
	MaxLen    *int           // 0 to MaxLen
	MaxPerKey *int           // 0 to MaxLen
	Overflow  *Overflow

	RetainFor   *time.Duration // 0 to MaxDelay
	RetainCount *int           // 0 to MaxLen
	RetainBytes *int64         // 0 to MaxLen
	DeadFor     *time.Duration // 0 to MaxDelay
	DeadCount   *int           // 0 to MaxLen
	TellDead    *bool
}

// Apply returns a configuration with the edit made, or ErrInvalid if that contradicts itself. The
// edit has passed Check.
func (e *ConfigEdit) Apply(c QueueConfig) (QueueConfig, error) {
	set(&c.Paused, e.Paused)
	setMillis(&c.ExpireIn, e.ExpireIn)
	set(&c.MaxDeliveries, e.MaxDeliveries)
	set(&c.Shards, e.Shards)
	if c.Shards == 1 {
		c.Shards = 0
	}
	set(&c.Ordered, e.Ordered)
	set(&c.KeyLimit, e.KeyLimit)
	set(&c.MinBatch, e.MinBatch)
	setMillis(&c.Linger, e.Linger)
	setMillis(&c.KeyIdle, e.KeyIdle)
	set(&c.MaxLen, e.MaxLen)
	set(&c.MaxPerKey, e.MaxPerKey)
	set(&c.Overflow, e.Overflow)
	setMillis(&c.RetainFor, e.RetainFor)
	set(&c.RetainCount, e.RetainCount)
	set(&c.RetainBytes, e.RetainBytes)
	setMillis(&c.DeadFor, e.DeadFor)
	set(&c.DeadCount, e.DeadCount)
	set(&c.TellDead, e.TellDead)
	return c, c.check()
}

func set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

func setMillis(to, from *time.Duration) {
	if from != nil {
		*to = Millis(*from)
	}
}

// Check looks at the fields that are set, each for itself.
func (e *ConfigEdit) Check() error {
	for _, d := range []struct {
		what string
		of   *time.Duration
	}{
		{"expiry", e.ExpireIn},
		{"linger", e.Linger},
		{"idle time of keys", e.KeyIdle},
		{"time to retain", e.RetainFor},
		{"time to keep the dead", e.DeadFor},
	} {
		if d.of == nil {
			continue
		}
		if err := checkDuration(d.what, *d.of, 0, MaxDelay); err != nil {
			return err
		}
	}
	for _, n := range []struct {
		what string
		of   *int
		most int
	}{
		{"max deliveries", e.MaxDeliveries, MaxAttempts},
		{"shards", e.Shards, MaxShards},
		{"key limit", e.KeyLimit, MaxBatch},
		{"min batch", e.MinBatch, MaxBatch},
		{"max length", e.MaxLen, MaxLen},
		{"max length per key", e.MaxPerKey, MaxLen},
		{"retained records", e.RetainCount, MaxLen},
		{"dead records", e.DeadCount, MaxLen},
	} {
		if n.of == nil {
			continue
		}
		if err := checkNumber(n.what, *n.of, 0, n.most); err != nil {
			return err
		}
	}
	if e.RetainBytes != nil && (*e.RetainBytes < 0 || *e.RetainBytes > MaxLen) {
		return fmt.Errorf("%w: retained bytes %d are not between 0 and %d", ErrInvalid, *e.RetainBytes, int64(MaxLen))
	}
	if e.Overflow != nil && *e.Overflow > DropOldest {
		return fmt.Errorf("%w: unknown overflow %d", ErrInvalid, *e.Overflow)
	}
	return nil
}

// check looks for what contradicts itself.
func (c *QueueConfig) check() error {
	switch {
	case c.MinBatch > 1 && c.Linger == 0:
		return fmt.Errorf("%w: a min batch needs a linger, or too few records would wait for ever", ErrInvalid)
	case c.MinBatch <= 1 && c.Linger > 0:
		return fmt.Errorf("%w: a linger needs a min batch above 1", ErrInvalid)
	case c.Ordered && c.KeyLimit > 1:
		return fmt.Errorf("%w: key limit %d in an ordered queue, where it is 1", ErrInvalid, c.KeyLimit)
	case !c.Ordered && c.KeyLimit > 0 && c.KeyLimit < c.MinBatch:
		return fmt.Errorf("%w: key limit %d is below the min batch %d", ErrInvalid, c.KeyLimit, c.MinBatch)
	}
	return nil
}
