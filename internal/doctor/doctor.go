// SPDX-License-Identifier: Apache-2.0

// Package doctor looks at a store and says what would lose messages or hurt, why, and how to mend it.
//
// It only reads: no settings are changed, no KEYS and no scan of a keyspace. Two things leave a trace:
// counting a queue lets its ended leases come back, as every call on a queue does, and a directory is
// probed with a scratch file that is removed again.
package doctor

import (
	"fmt"
	"time"
)

// Severity of a finding.
type Severity string

// The severities.
const (
	Note    Severity = "note"    // worth knowing, nothing to mend
	Warning Severity = "warning" // hurts, or will under circumstances that happen
	Problem Severity = "problem" // loses messages or stops them, or is about to
)

// Harm is what comes of a finding.
type Harm string

// The harms.
const (
	Loss   Harm = "loses messages"
	Stop   Harm = "stops messages"
	Delay  Harm = "delays messages"
	Unseen Harm = "cannot be seen"
	Fine   Harm = "is no harm"
)

// Finding is one thing that was noticed.
type Finding struct {
	Check    string   `json:"check"`
	Severity Severity `json:"severity"`
	Harm     Harm     `json:"harm"`
	Where    string   `json:"where"` // server, directory or queue
	What     string   `json:"what"`
	Why      string   `json:"why"`
	Mend     []string `json:"mend,omitempty"` // a command or a sentence a line
}

// Limits beyond which something is found; see [Defaults].
type Limits struct {
	Fill        float64       // part of the memory in use that is a warning
	Full        float64       // and that is a problem
	Clock       time.Duration // difference of clocks
	Ping        time.Duration // of 99 in 100 round trips
	Sync        time.Duration // of 9 in 10 syncs of a small file
	Slow        time.Duration // of one command, in the last hour
	Key         int64         // bytes of one key
	Lag         time.Duration // of the oldest ready message
	Dead        int64         // messages
	Lapsed      float64       // part of the deliveries whose lease ended
	Forecast    time.Duration // until a store is full
	FreeBytes   int64         // of a disk, below which is a warning
	FreePercent float64       // the same
}

// Defaults are the limits of bide doctor.
func Defaults() Limits {
	return Limits{
		Fill: 0.75, Full: 0.9,
		Clock: time.Second, Ping: 10 * time.Millisecond, Sync: 30 * time.Millisecond, Slow: 50 * time.Millisecond,
		Key: 4 << 30, Lag: time.Minute, Dead: 100, Lapsed: 0.01,
		Forecast: 7 * 24 * time.Hour, FreeBytes: 1 << 30, FreePercent: 5,
	}
}

// Worst returns the highest severity, "" if nothing was found.
func Worst(fs []Finding) Severity {
	worst := Severity("")
	for _, f := range fs {
		switch {
		case f.Severity == Problem:
			return Problem
		case f.Severity == Warning, worst == "":
			worst = f.Severity
		}
	}
	return worst
}

// size tells bytes to people.
func size(n float64) string {
	for _, u := range []struct {
		name string
		unit float64
	}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if n >= u.unit {
			return fmt.Sprintf("%.1f %s", n/u.unit, u.name)
		}
	}
	return fmt.Sprintf("%.0f bytes", n)
}
