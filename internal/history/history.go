// SPDX-License-Identifier: Apache-2.0

// Package history records what the processes of a test asked of an engine and what they were told,
// and checks afterwards that all of it can be true together with what is stored in the end. It is
// how a test with faults in it ends: whatever was killed, cut off or lost, the promises hold.
//
// Every call is written down before it is made and again when it has returned, a line of JSON each,
// so that the history of a process that was killed ends with the call that it was making. A call
// without a return, or with an error that does not say that nothing was done, may have taken effect
// at any later time.
package history

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/bidemq/bide/storage"
)

// Fate of a call.
type Fate string

// The fates.
const (
	Pending Fate = ""        // it was made and did not return
	OK      Fate = "ok"      // it took effect, and its items say how
	Fail    Fate = "fail"    // it did nothing
	Unknown Fate = "unknown" // it may have taken effect, or may yet
)

// Call is one call of an engine.
type Call struct {
	Process string    `json:"process"`
	Number  int64     `json:"number"` // in its process
	Op      string    `json:"op"`     // name of the method, in lower case
	Queue   string    `json:"queue"`
	Began   time.Time `json:"began"`           // by the machine's clock, which all processes share
	Ended   time.Time `json:"ended,omitzero"`  // zero if it is pending
	Fate    Fate      `json:"fate,omitempty"`  //
	Now     time.Time `json:"now,omitzero"`    // the engine's instant, zero if it did not say
	Lease   int64     `json:"lease,omitempty"` // ms, asked for by claim and extend
	Error   string    `json:"error,omitempty"`
	Items   []Item    `json:"items,omitempty"`
}

// Item is one message of a call.
type Item struct {
	ID         string          `json:"id"`
	Seq        int64           `json:"seq,omitempty"`
	Token      int64           `json:"token,omitempty"`      // claim, extend, settle
	Body       string          `json:"body,omitempty"`       // hash of body and headers: enqueue, claim, edit
	Key        string          `json:"key,omitempty"`        // enqueue, claim
	Due        time.Time       `json:"due,omitzero"`         // enqueue, claim
	FirstDue   time.Time       `json:"firstDue,omitzero"`    // claim
	Until      time.Time       `json:"until,omitzero"`       // claim
	ExpireIn   time.Duration   `json:"expireIn,omitempty"`   // enqueue
	Outcome    storage.Outcome `json:"outcome,omitempty"`    // enqueue
	OnLive     storage.OnLive  `json:"onLive,omitempty"`     // enqueue
	Dropped    []string        `json:"dropped,omitempty"`    // enqueue
	Max        int             `json:"max,omitempty"`        // enqueue, claim: attempts allowed
	Attempts   int             `json:"attempts,omitempty"`   // claim
	Deliveries int             `json:"deliveries,omitempty"` // claim
	Verdict    storage.Verdict `json:"verdict,omitempty"`    // settle
	Lost       bool            `json:"lost,omitempty"`       // extend, settle: the lease was lost before
}

// maybe says whether a call took effect or may have.
func (c *Call) maybe() bool { return c.Fate != Fail }

// end is when a call has taken effect at the latest; a pending or unknown one may do so at any time.
func (c *Call) end() time.Time {
	if c.Fate == OK {
		return c.Ended
	}
	return never
}

var never = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// Read reads what recorders have written, each from its own reader, and returns the calls in the
// order in which they began. The last line of a process that was killed may be incomplete.
func Read(rs ...io.Reader) ([]Call, error) {
	type id struct {
		process string
		number  int64
	}
	calls := map[id]Call{}
	for i, r := range rs {
		lines := bufio.NewReader(r)
		for {
			line, err := lines.ReadBytes('\n')
			if errors.Is(err, io.EOF) {
				break // what stands before is a line that was not finished
			}
			if err != nil {
				return nil, fmt.Errorf("history %d: %w", i, err)
			}
			var c Call
			if err := json.Unmarshal(line, &c); err != nil {
				return nil, fmt.Errorf("history %d: %w", i, err)
			}
			calls[id{c.Process, c.Number}] = c // the return takes the place of the call
		}
	}
	all := make([]Call, 0, len(calls))
	for _, c := range calls {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b Call) int {
		return cmp.Or(a.Began.Compare(b.Began), cmp.Compare(a.Process, b.Process), cmp.Compare(a.Number, b.Number))
	})
	return all, nil
}
