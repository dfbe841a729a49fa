// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"bytes"
	"fmt"
	"strconv"
	"time"
)

// Size of a body in bytes, the same for every system and workload.
const Size = 256

// width of a number in a body, in hexadecimal digits.
const width = 16

var filler = bytes.Repeat([]byte("."), Size-2*width)

// Body is the body of a message: its index and the instant from which it may be delivered, in ASCII,
// so that a receiver needs nothing else to judge it. A zero due is an instant long past.
func Body(index int, due time.Time) []byte {
	var nanos int64
	if !due.IsZero() {
		nanos = due.UnixNano()
	}
	b := make([]byte, 0, Size)
	b = fmt.Appendf(b, "%0*x%0*x", width, index, width, nanos)
	return append(b, filler...)
}

// parse reads what Body wrote.
func parse(body []byte) (index int, due int64, err error) {
	if len(body) != Size {
		return 0, 0, fmt.Errorf("body of %d bytes, want %d", len(body), Size)
	}
	i, err := strconv.ParseInt(string(body[:width]), 16, 64)
	if err != nil {
		return 0, 0, fmt.Errorf("body without index: %w", err)
	}
	due, err = strconv.ParseInt(string(body[width:2*width]), 16, 64)
	if err != nil {
		return 0, 0, fmt.Errorf("body without due time: %w", err)
	}
	return int(i), due, nil
}
