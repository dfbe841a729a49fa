// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"fmt"
	"slices"
	"time"
	"unicode"
	"unicode/utf8"
)

// Limits of the contract. Engines check them with the functions below, so that a bad argument gets
// the same answer everywhere.
const (
	MaxName      = 128                   // bytes of a queue name
	MaxID        = 256                   // bytes of an id
	MaxKey       = 256                   // bytes of a key
	MaxPriority  = 9                     //
	MaxReason    = 1024                  // bytes of a reason
	MaxBatch     = 1000                  // records in one call
	MaxAttempts  = 1_000_000             // also deliveries
	MaxLease     = 24 * time.Hour        //
	MaxDelay     = 50 * 8766 * time.Hour // 50 years
	MaxClockStep = 10 * time.Second      // see R2
	DefaultBody  = 1 << 20               // bytes of a body with its headers, unless the engine is opened with another limit
	Sweep        = 100                   // see "What time does"
	MaxShards    = 64                    // of a queue
	MaxKeys      = 100                   // keys that a claim names
	MaxLen       = 1_000_000_000_000     // of a bound or a limit of a queue, records or bytes
	MaxHistory   = 10                    // attempts kept with a record
	MaxNote      = 200                   // bytes of a reason in the history
)

var (
	maxNow = time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
	maxDue = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
)

// Millis rounds a duration up to whole milliseconds.
func Millis(d time.Duration) time.Duration {
	if r := d % time.Millisecond; r > 0 {
		return d - r + time.Millisecond
	}
	return d
}

// DueMilli returns an instant in Unix milliseconds, rounded up; instants before 1970 are 0.
func DueMilli(t time.Time) int64 {
	ms := t.UnixMilli()
	if t.Nanosecond()%int(time.Millisecond) != 0 {
		ms++
	}
	return max(ms, 0)
}

// CheckNow accepts the zero instant, and explicit ones from 1970 to 2100.
func CheckNow(now time.Time) error {
	if !now.IsZero() && (now.UnixMilli() < 0 || now.After(maxNow)) {
		return fmt.Errorf("%w: instant %s is not between 1970 and 2100", ErrInvalid, now.UTC().Format(time.RFC3339))
	}
	return nil
}

// CheckQueue accepts names of 1 to MaxName letters, digits, dots, dashes, underscores and colons
// that begin with a letter or a digit.
func CheckQueue(name string) error {
	if name == "" {
		return fmt.Errorf("%w: queue name is empty", ErrInvalid)
	}
	if len(name) > MaxName {
		return fmt.Errorf("%w: queue name has %d bytes, at most %d are allowed", ErrInvalid, len(name), MaxName)
	}
	for i, c := range []byte(name) {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !letter && (i == 0 || c != '.' && c != '-' && c != '_' && c != ':') {
			return fmt.Errorf("%w: queue name %q: letters, digits and .-_: are allowed, beginning with a letter or a digit", ErrInvalid, name)
		}
	}
	return nil
}

// CheckID accepts 1 to MaxID bytes of UTF-8 without control characters.
func CheckID(id string) error {
	if id == "" {
		return fmt.Errorf("%w: id is empty", ErrInvalid)
	}
	return checkText("id", id)
}

// checkText looks at ids and at what is as long as they may be.
func checkText(what, s string) error {
	if len(s) > MaxID {
		return fmt.Errorf("%w: %s has %d bytes, at most %d are allowed", ErrInvalid, what, len(s), MaxID)
	}
	if !utf8.ValidString(s) {
		return fmt.Errorf("%w: %s is not valid UTF-8", ErrInvalid, what)
	}
	for _, r := range s {
		if unicode.IsControl(r) {
			return fmt.Errorf("%w: %s %q contains a control character", ErrInvalid, what, s)
		}
	}
	return nil
}

func checkDuration(what string, d, least, most time.Duration) error {
	if d < least || d > most {
		return fmt.Errorf("%w: %s %s is not between %s and %s", ErrInvalid, what, d, least, most)
	}
	return nil
}

func checkNumber(what string, n, least, most int) error {
	if n < least || n > most {
		return fmt.Errorf("%w: %s %d is not between %d and %d", ErrInvalid, what, n, least, most)
	}
	return nil
}

func checkDue(due time.Time) error {
	if due.After(maxDue) {
		return fmt.Errorf("%w: due time %s is after the year 2200", ErrInvalid, due.UTC().Format(time.RFC3339))
	}
	return nil
}

func checkPayload(body []byte, headers map[string]string, maxBody int) error {
	size := len(body)
	for name, value := range headers {
		if name == "" {
			return fmt.Errorf("%w: a header has no name", ErrInvalid)
		}
		if err := checkText("header name", name); err != nil {
			return err
		}
		if !utf8.ValidString(value) {
			return fmt.Errorf("%w: value of header %q is not valid UTF-8", ErrInvalid, name)
		}
		size += len(name) + len(value)
	}
	if size > maxBody {
		return fmt.Errorf("%w: body and headers have %d bytes, at most %d are allowed", ErrTooLarge, size, maxBody)
	}
	return nil
}

// CheckBatch looks at the size of a call.
func CheckBatch(n int) error { return checkNumber("batch of", n, 0, MaxBatch) }

// CheckLimit looks at how much a call asks for.
func CheckLimit(n int) error { return checkNumber("limit", n, 1, MaxBatch) }

// CheckLease looks at the length of a lease.
func CheckLease(d time.Duration) error {
	return checkDuration("lease", d, time.Millisecond, MaxLease)
}

// CutReason shortens a reason to MaxReason bytes, at the border of a character.
func CutReason(s string) string { return cut(s, MaxReason) }

// Note appends an attempt to a history, which it does not change, and returns the latest MaxHistory.
func Note(history []Attempt, a Attempt) []Attempt {
	a.Reason = cut(a.Reason, MaxNote)
	from := max(0, len(history)-MaxHistory+1)
	return append(slices.Clone(history[from:]), a)
}

func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
