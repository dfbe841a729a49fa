// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"math"
	"time"
)

// Forever is the Next of a queue in which nothing will become claimable by the passing of time.
const Forever = time.Duration(math.MaxInt64)

// Engine keeps records. Its methods may be called from many goroutines. Slices and maps passed in
// are not kept or changed by the engine; those returned belong to the caller.
//
// A zero now means the engine's own clock; [CheckNow] says which explicit instants are allowed.
//
// A call whose context ends returns the context's error. Whether it took effect is unknown then, as
// it is after ErrUnavailable.
type Engine interface {
	// Enqueue stores records in a queue, which comes into being with its first record. The results
	// match recs by index: a bad record is refused in its result, an error means that the fate of
	// all of them is unknown, or that the call was invalid as a whole (queue name, now, more than
	// [MaxBatch] records). Records of one call are stored in order. R1
	Enqueue(ctx context.Context, now time.Time, queue string, recs []Record) ([]EnqueueResult, error)

	// Claim leases what is due. A claim whose reply is lost has happened: its records come back
	// when their leases end. R2 R3 R4
	Claim(ctx context.Context, now time.Time, c Claim) (Claimed, error)

	// Extend makes the leases end at now plus lease and reports those that were lost before.
	// Receipts of several queues may be mixed, as in Settle. R5
	Extend(ctx context.Context, now time.Time, lease time.Duration, rs []Receipt) (lost []Receipt, err error)

	// Settle ends leases. It reports those that were lost before; the others are settled. A receipt
	// that stands twice in a call is settled by the first and lost for the second. Receipts of
	// several queues may be mixed; each queue is settled in one step, in order. ErrInvalid means
	// that nothing was settled; after another error some queues may be settled and others not, and
	// the call may be repeated. R5 R7
	Settle(ctx context.Context, now time.Time, ss []Settlement) (lost []Receipt, err error)

	// Wait blocks until something may have become claimable in one of the scopes without time alone
	// having done it (an Enqueue, a Settle, a Resume by anybody), and returns those scopes; or until
	// d has passed, and returns none. The result holds indexes into scopes. A notice since the last
	// Claim of a scope through this Engine returns at once, so that nothing is missed between Claim
	// and Wait. The caller passes the least Next of its scopes as d; [Forever] waits without end. Any
	// number of Waits may run, also by callers that claim from the same scopes: a Wait returns a
	// scope as well when the Next that somebody else's later Claim of it through this Engine answered
	// has passed. ErrInvalid says that a scope is none. R8
	Wait(ctx context.Context, scopes []Scope, d time.Duration) (ready []int, err error)

	Admin
	Locker
	Topics

	// Close ends every call under way with ErrClosed, as it does every later one, and frees what the
	// engine holds. Stored records stay.
	Close() error
}

// Sharder may be an engine that keeps what a queue has in several places, which fail one by one. Who settles and
// extends leases of one place in a call does not wait for another.
type Sharder interface {
	// Shard numbers the place of a lease, from 0 on, as far as it is known.
	Shard(r Receipt) int
}

// Admin is the part of an engine for people and tools: it finds, changes, counts and mends.
type Admin interface {
	// Queues lists the names that come after the given one, in order, at most limit of them.
	Queues(ctx context.Context, after string, limit int) ([]string, error)

	// Stats counts a queue. An unknown queue has zero of everything.
	Stats(ctx context.Context, now time.Time, queue string) (Stats, error)

	// Get returns the record that an id means, or ErrNotFound.
	Get(ctx context.Context, now time.Time, queue, id string) (Record, error)

	// List returns records of one state in the order of their position, from after on.
	List(ctx context.Context, now time.Time, queue string, f Filter) (Page, error)

	// Purge removes waiting or finished records, at most f.Limit of them, and their successors.
	Purge(ctx context.Context, now time.Time, queue string, f Filter) (Batch, error)

	// Redrive makes dead records ready again, due now, last in arrival, with no attempts and no
	// deliveries spent. A record with a live namesake is skipped; if the filter names an ID, that is
	// ErrConflict, and no dead record of the ID is ErrNotFound.
	Redrive(ctx context.Context, now time.Time, queue string, f Filter) (Batch, error)

	// Edit changes a waiting record in place, keeping its id, its sequence and its attempts, and
	// returns it as it is now. ErrNotFound, ErrConflict (leased or finished), ErrExpired (it would
	// be past its expiry), ErrInvalid and ErrTooLarge change nothing. R10
	Edit(ctx context.Context, now time.Time, queue, id string, e Edit) (Record, error)

	// Cancel removes a live record. ErrNotFound, or ErrConflict if it is leased and running is not
	// set, or finished. R10
	Cancel(ctx context.Context, now time.Time, queue, id string, running bool) error

	// Configure changes the given fields of a queue's configuration, for everybody at once, and
	// returns the whole of it. It takes no instant and lets no time pass for the records. An empty
	// edit reads the configuration without creating the queue. ErrInvalid says that a field or the
	// whole makes no sense, ErrConflict that Ordered cannot change now. R15
	Configure(ctx context.Context, queue string, e ConfigEdit) (QueueConfig, error)

	// Keys lists keys of a queue. What it costs does not grow with their number.
	Keys(ctx context.Context, now time.Time, queue string, f KeyFilter) ([]KeyStats, error)

	// Told notes that somebody has been told of the death of records, at most MaxBatch. Those that
	// are not Untold are passed over. It lets no time pass.
	Told(ctx context.Context, queue string, dead []DeadID) error

	// Repair compares the structures of a queue with its records, a bounded step at a time, and
	// mends them unless it is a dry run. R14
	Repair(ctx context.Context, now time.Time, queue string, r Repair) (Repaired, error)
}
