// SPDX-License-Identifier: Apache-2.0

package storage

import "fmt"

var (
	stateNames   = [...]string{Delayed: "delayed", Ready: "ready", Leased: "leased", Dead: "dead", Done: "done"}
	outcomeNames = [...]string{Refused: "refused", Stored: "stored", Duplicate: "duplicate", Replaced: "replaced", Reran: "rerun"}
	verdictNames = [...]string{Ack: "ack", Retry: "retry", Release: "release", Bury: "bury", Expire: "expire", Return: "return"}
	onLiveNames  = [...]string{Keep: "keep", Replace: "replace", Rerun: "rerun"}
)

// String returns the state's name in lower case.
func (s State) String() string { return name(stateNames[:], int(s)) }

// String returns the outcome's name in lower case.
func (o Outcome) String() string { return name(outcomeNames[:], int(o)) }

// String returns the verdict's name in lower case.
func (v Verdict) String() string { return name(verdictNames[:], int(v)) }

// String returns the choice's name in lower case.
func (o OnLive) String() string { return name(onLiveNames[:], int(o)) }

func name(names []string, i int) string {
	if i < len(names) && names[i] != "" {
		return names[i]
	}
	return fmt.Sprintf("unknown(%d)", i)
}

// ParseState reads a state's name.
func ParseState(s string) (State, error) {
	for i, n := range stateNames {
		if n != "" && n == s {
			return State(i), nil
		}
	}
	return 0, fmt.Errorf("%w: state %q is not one of delayed, ready, leased, dead, done", ErrInvalid, s)
}
