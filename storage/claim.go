// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"slices"
	"strings"
	"time"
)

// Scope names records that somebody asks for: those of a queue, of certain keys of it, or of all
// but certain keys. The key "" stands for the records without one.
type Scope struct {
	Queue  string
	Keys   []string // only these keys, at most MaxKeys; none is all
	Except []string // not these keys, at most MaxKeys; not with Keys
}

// String names the scope: equal scopes have the same name, different ones do not.
func (s *Scope) String() string {
	if s.All() {
		return s.Queue
	}
	parts := []string{s.Queue}
	for _, k := range s.Keys {
		parts = append(parts, "+"+k)
	}
	for _, k := range s.Except {
		parts = append(parts, "-"+k)
	}
	return strings.Join(parts, "\x00")
}

// All says whether the scope is the whole queue.
func (s *Scope) All() bool { return len(s.Keys) == 0 && len(s.Except) == 0 }

// Has says whether the scope has the records of a key.
func (s *Scope) Has(key string) bool {
	if len(s.Keys) > 0 {
		return slices.Contains(s.Keys, key)
	}
	return !slices.Contains(s.Except, key)
}

// Claim asks for due records of one queue.
type Claim struct {
	Queue    string
	Keys     []string      // as in Scope
	Except   []string      // as in Scope
	Group    bool          // a run of one key, or of the records without one
	Limit    int           // records at most, 1 to MaxBatch
	MaxBytes int           // stop before bodies and headers exceed this, though not before the first record; 0 is no bound
	Lease    time.Duration // 1 ms to MaxLease
	By       string        // who asks, shown to people; at most MaxID bytes
}

// Scope returns what the claim asks for.
func (c *Claim) Scope() Scope { return Scope{Queue: c.Queue, Keys: c.Keys, Except: c.Except} }

// Claimed is what a claim got.
type Claimed struct {
	Now     time.Time     // the engine's instant of the claim
	Records []Record      // leased to the caller, in claim order
	Next    time.Duration // until a claim of the same scope may get something by time alone; 0 if more is now, Forever if it will not
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
	Return                     // not begun, the attempt and the delivery are given back
)

// Reasons that engines give for what nobody settled.
const (
	ReasonLeaseEnded    = "lease ended"
	ReasonMaxDeliveries = "too many deliveries"
)
