// SPDX-License-Identifier: Apache-2.0

package storagetest

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/bidemq/bide/storage"
)

// Program is a sequence of calls on one queue. It means the same on every engine.
type Program []Op

// Op is one step of a program: time passes, then a call is made. Fields that a call does not name
// are not looked at.
type Op struct {
	Do    string        // one of the names in machine.go
	After time.Duration // what passes before

	IDs   []string      // enqueue: one record each; by-id calls: the first
	Delay time.Duration // enqueue, retry, release, reschedule; negative is a due time in the past
	Prio  int           // enqueue, edit
	Key   string        // enqueue, list, purge, redrive, keys

	Keys   []string // claim
	Except []string // claim
	Group  bool     // claim

	OnLive      storage.OnLive // enqueue
	MaxAttempts int            // enqueue
	ExpireIn    time.Duration  // enqueue, queueExpiry
	DedupFor    time.Duration  // enqueue

	N     int           // claim, purge, redrive, list, keys: limit; deliveries: MaxDeliveries; configure
	Bytes int           // claim
	Lease time.Duration // claim, extend
	Back  []int         // extend and settlements: which receipts, 0 is the latest got, 1 the one before

	Set string // configure: which field, N or Delay is its value
	Via int    // which of several engines makes the step, see SpreadPrograms

	State storage.State // list, purge
	Desc  bool          // list, purge, redrive
	From  time.Duration // list, purge, redrive: bounds, from now on; zero is none
	To    time.Duration
}

// String prints the program as Go source.
func (p Program) String() string {
	var b strings.Builder
	b.WriteString("storagetest.Program{\n")
	for _, op := range p {
		fmt.Fprintf(&b, "\t%s,\n", op)
	}
	b.WriteString("}")
	return b.String()
}

// String prints the step as an element of a [Program], without what is zero.
func (o Op) String() string {
	v := reflect.ValueOf(o)
	var fields []string
	for i := range v.NumField() {
		if f := v.Field(i); !f.IsZero() {
			fields = append(fields, v.Type().Field(i).Name+": "+literal(f.Interface()))
		}
	}
	return "{" + strings.Join(fields, ", ") + "}"
}

func literal(v any) string {
	switch v := v.(type) {
	case string:
		return strconv.Quote(v)
	case time.Duration:
		return strconv.FormatInt(v.Milliseconds(), 10) + " * time.Millisecond"
	case storage.State:
		return "storage." + capital(v.String())
	case storage.OnLive:
		return "storage." + capital(v.String())
	default:
		return fmt.Sprintf("%#v", v)
	}
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
