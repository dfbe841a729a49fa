// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"
	"time"
)

// Size of a body in bytes unless something else is said, and the least there is.
const (
	Size  = 256
	Least = 16
)

// width of a number in a body, in hexadecimal digits.
const width = 16

var filler = bytes.Repeat([]byte("."), 4<<10)

// Body is the body of a message: its index and the instant from which it may be delivered, so that a
// receiver needs nothing else to judge it, and then points. It is ASCII from 32 bytes on. A zero due is
// an instant long past.
func Body(size, index int, due time.Time) []byte {
	var nanos int64
	if !due.IsZero() {
		nanos = due.UnixNano()
	}
	b := make([]byte, 0, size)
	if size < 2*width {
		b = binary.BigEndian.AppendUint64(b, uint64(index))
		b = binary.BigEndian.AppendUint64(b, uint64(nanos))
	} else {
		b = fmt.Appendf(b, "%0*x%0*x", width, index, width, nanos)
	}
	for len(b) < size {
		b = append(b, filler[:min(len(filler), size-len(b))]...)
	}
	return b
}

// parse reads what Body wrote.
func parse(body []byte, size int) (index int, due int64, err error) {
	if len(body) != size {
		return 0, 0, fmt.Errorf("body of %d bytes, want %d", len(body), size)
	}
	if len(body) < 2*width {
		return int(binary.BigEndian.Uint64(body)), int64(binary.BigEndian.Uint64(body[8:])), nil
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
