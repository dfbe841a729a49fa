// SPDX-License-Identifier: Apache-2.0

package storage

import "time"

// Claim asks for due records of one queue.
type Claim struct {
	Queue    string
	Limit    int           // records at most, 1 to MaxBatch
	MaxBytes int           // stop before bodies and headers exceed this, though not before the first record; 0 is no bound
	Lease    time.Duration // 1 ms to MaxLease
	By       string        // who asks, shown to people; at most MaxID bytes
}

// Claimed is what a claim got.
type Claimed struct {
	Now     time.Time     // the engine's instant of the claim
	Records []Record      // leased to the caller, in claim order
	Next    time.Duration // until something will be claimable by time alone: due, or the end of a lease; 0 if more is now, Forever if nothing will
}

// Receipt proves one claim of one record. It is comparable.
type Receipt struct {
	Queue string
	ID    string
	Token int64
}

// Settlement ends a lease.
type Settlement struct {
	Receipt Receipt
	Verdict Verdict
	Delay   time.Duration // Retry, Release: until due again, 0 to MaxDelay; 0 is now for Retry, and the due time it had for Release
	Reason  string        // Retry, Release, Bury: kept with the record unless empty, cut to MaxReason bytes
}

// Verdict is the outcome that a delivery is settled with.
type Verdict uint8

// The verdicts.
const (
	Ack     Verdict = iota + 1 // handled, the record is removed
	Retry                      // failed, the attempt is spent
	Release                    // not now, the attempt is given back
	Bury                       // give up, the record is dead
	Expire                     // past its expiry before it was begun, the record is dropped and counted as expired
)

// Reasons that engines give for what nobody settled.
const (
	ReasonLeaseEnded    = "lease ended"
	ReasonMaxDeliveries = "too many deliveries"
)
