// SPDX-License-Identifier: Apache-2.0

package storage

import "time"

// Edit changes the fields that are set. Due and Delay exclude each other; either sets FirstDue too.
type Edit struct {
	Due      *time.Time
	Delay    *time.Duration // from the engine's now on
	Priority *int
	Body     *[]byte
	Headers  *map[string]string
}

// Position places a record among those of its state, see [Record.At].
type Position struct {
	At  time.Time
	Seq int64
}

// Filter selects records of one state.
type Filter struct {
	State State     // Redrive: Dead; Purge: Delayed, Ready, Dead or Done
	ID    string    // only this id; "" is any
	Key   string    // only this key; "" is any
	From  time.Time // only records at or after this instant, by Record.At; zero is no bound
	To    time.Time // only records before this instant; zero is no bound
	Desc  bool      // latest first
	After Position  // only records behind this position in the chosen order; zero starts at the first
	Limit int       // 1 to MaxBatch

	Untold bool // List of dead records: only those that nobody has told
}

// DeadID names one dead record: an id may have several.
type DeadID struct {
	ID  string
	Seq int64
}

// KeyOrder is an order to list keys in.
type KeyOrder uint8

// The orders.
const (
	ByName  KeyOrder = iota // in byte order
	Largest                 // most waiting records first, then by name
	Oldest                  // keys with waiting records only: earliest Head first, then by name
)

// KeyFilter selects keys of a queue: all that have a waiting or leased record.
type KeyFilter struct {
	Key   string   // only this one; "" is any
	By    KeyOrder //
	After string   // ByName: only keys behind this one
	Limit int      // 1 to MaxBatch
}

// KeyStats counts a key.
type KeyStats struct {
	Key     string
	Waiting int64
	Leased  int64
	Head    time.Time // due time of the waiting record that is first in the key's order; zero if none waits
}

// Page of a listing. It may hold fewer records than asked for although there are more.
type Page struct {
	Records []Record
	More    bool     // continue with After set to Last
	Last    Position // of the last record looked at
}

// Batch says what one step of a purge or a redrive did.
type Batch struct {
	Count   int      // records purged or redriven
	Skipped int      // dead records that have a live namesake
	More    bool     // continue with After set to Last
	Last    Position // of the last record looked at
}

// Stats of a queue at one instant.
type Stats struct {
	Now     time.Time
	Config  QueueConfig
	Delayed int64
	Ready   int64
	Leased  int64
	Dead    int64
	Done    int64
	Keys    int64     // that have a waiting or leased record
	NextDue time.Time // earliest due time of a waiting record, in the past if it is ready; zero if none waits
	Total   Counters
}

// Counters count since the queue came into being.
type Counters struct {
	Enqueued   int64 // records that came into being: stored, replacing, or started as a successor
	Duplicates int64
	Replaced   int64 // records that a new one took the place of
	Reruns     int64 // successors accepted, started or not
	Claimed    int64 // deliveries
	Acked      int64
	Retried    int64 // settled with retry, death by it included
	Released   int64 // settled with release or return, death by it included
	Lapsed     int64 // leases that ended unsettled
	Died       int64
	Redriven   int64
	Expired    int64
	Canceled   int64
	Purged     int64
	Dropped    int64 // waiting records that made room, R12
	Retained   int64 // acknowledged records kept as done, R19
	Trimmed    int64 // dead and done records removed by the limits of the configuration, R19

	// What depends on the engine and the moment, and is not compared between engines.

	Wakeups     int64 // notices sent to waiting processes
	EmptyClaims int64 // claims that got nothing
	ClockSteps  int64 // steps back of the engine's clock by more than MaxClockStep
}

// Repair asks for one step of mending.
type Repair struct {
	DryRun bool   // report what is wrong, change nothing
	After  string // Repaired.Next of the step before, "" begins
	Limit  int    // entries to look at in this step, 1 to MaxBatch
}

// Repaired says what one step of mending found.
type Repaired struct {
	Checked int    // entries looked at
	Fixes   []Fix  // what was wrong and, unless it was a dry run, is mended
	Next    string // for Repair.After, "" at the end
}

// Fix is one kind of damage.
type Fix struct {
	What  string // in plain words: "record without place", "place without record", "wrong count"
	Count int
}
