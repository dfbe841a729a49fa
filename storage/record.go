// SPDX-License-Identifier: Apache-2.0

package storage

import "time"

// State of a record.
type State uint8

// The states.
const (
	Delayed State = iota + 1 // waiting, not due yet
	Ready                    // waiting and due
	Leased                   // with a consumer
	Dead                     // given up, kept for a person to look at
	Done                     // acknowledged, kept where a queue retains finished records
)

// OnLive says what Enqueue does with an id that is live or in its dedup window; the table in the
// package comment has every case.
type OnLive uint8

// The choices.
const (
	Keep    OnLive = iota // the stored one stays
	Replace               // the new one takes its place, after it if it is running
	Rerun                 // the new one follows if the stored one is running
)

// Record is a message and what the engine knows about it.
type Record struct {
	// What the producer says. Enqueue reads these fields and no others.

	ID          string            // 1 to MaxID bytes, see CheckID
	Key         string            // group that the message belongs to, 0 to MaxKey bytes; "" is none, see R3 R11 R12
	Priority    int               // 0 to 9, 9 is claimed first
	Body        []byte            // opaque; with Headers at most the engine's limit
	Headers     map[string]string // names of 1 to MaxKey bytes, names and values UTF-8; nil and empty are the same
	Due         time.Time         // claimable from then on; the past means now, and keeps its place before later ones
	Delay       time.Duration     // read by Enqueue instead of a zero Due: from the engine's now on, 0 to MaxDelay
	ExpireIn    time.Duration     // not delivered later than this after FirstDue; 0 takes the queue's, which is none by default
	MaxAttempts int               // attempts allowed, 0 is no limit
	DedupFor    time.Duration     // how long the ack keeps the id taken, 0 is not at all, up to MaxDelay
	OnLive      OnLive            // read by Enqueue and not stored

	// What the engine says.

	Seq        int64     // arrival in the queue, from 1; never used twice
	State      State     //
	FirstDue   time.Time // due as of Enqueue, Edit or Redrive; retries move Due only
	Enqueued   time.Time // instant of the Enqueue
	Attempts   int       // attempts begun and not given back, the running one included
	Deliveries int       // times that it was handed out
	Lease      Lease     // zero unless leased
	Finished   time.Time // instant of death, zero unless dead or done
	Reason     string    // why the latest attempt failed or the record died, at most MaxReason bytes
	History    []Attempt // the latest MaxHistory attempts that failed, oldest first; kept over a redrive
	Successor  bool      // a rerun starts when this record is finished
	Untold     bool      // dead, and nobody has told so far, see QueueConfig.TellDead
}

// Expires returns the instant from which the record is not delivered any more, zero if never.
func (r *Record) Expires() time.Time {
	if r.ExpireIn == 0 {
		return time.Time{}
	}
	return r.FirstDue.Add(Millis(r.ExpireIn))
}

// Receipt returns the proof of the record's lease, for Extend and Settle.
func (r *Record) Receipt(queue string) Receipt {
	return Receipt{Queue: queue, ID: r.ID, Token: r.Lease.Token}
}

// At is the instant that places a record among those of its state: the due time of a waiting
// record, the end of the lease of a leased one, the end of a finished one.
func (r *Record) At() time.Time {
	switch r.State {
	case Leased:
		return r.Lease.Until
	case Dead, Done:
		return r.Finished
	default:
		return r.Due
	}
}

// Attempt is one that failed: by retry, by bury, or by the end of its lease.
type Attempt struct {
	Delivery int       // which of the record's deliveries it was, from 1; they begin anew with a redrive
	Ended    time.Time //
	By       string    // Claim.By
	Reason   string    // at most MaxNote bytes
}

// Lease of a record to a consumer.
type Lease struct {
	Token int64     // grows with every claim in the queue, see R5
	Until time.Time // the lease is lost from this instant on
	By    string    // Claim.By
}

// EnqueueResult says what became of one record.
type EnqueueResult struct {
	Outcome Outcome
	Seq     int64     // of the record stored, or of the live one that stands in the way; 0 if none does
	Due     time.Time // of the record that Seq means
	Now     time.Time // the engine's instant of the call
	Dropped []string  // ids of the records that were dropped to make room for it, in that order; R12
	Err     error     // why a record was refused: ErrInvalid, ErrTooLarge, ErrExpired or ErrFull; nil otherwise
}

// Outcome of enqueueing one record. A duplicate is no error: the message is there, as was wanted.
type Outcome uint8

// The outcomes.
const (
	Refused   Outcome = iota // not stored, Err says why
	Stored                   //
	Duplicate                // the id is live or in its dedup window, nothing was changed
	Replaced                 // stored in place of a waiting one
	Reran                    // stored as the successor of a running one
)
