// SPDX-License-Identifier: Apache-2.0

package pebblestore

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/bidemq/bide/storage"
)

// valueFormat is the first byte of every value of kinds Q, R, S, C, U and K. A change of any layout
// below raises it. Values of the first format, which knew no keys, and of the second, which had a key
// for each lease, are read.
const (
	valueFormat = 3
	firstFormat = 1
)

func appendInt(dst []byte, n int64) []byte { return binary.AppendUvarint(dst, uint64(n)) }

func appendString[T string | []byte](dst []byte, s T) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

func appendBool(dst []byte, b bool) []byte {
	if b {
		return append(dst, 1)
	}
	return append(dst, 0)
}

// reader takes a value apart. After its first failure every read gives zero, so that decoding has
// one check, at its end.
type reader struct {
	rest   []byte
	format byte
	err    error
}

func read(value []byte) *reader {
	r := &reader{rest: value}
	if len(value) == 0 {
		r.fail("empty value")
		return r
	}
	if r.format = value[0]; r.format < firstFormat || r.format > valueFormat {
		r.fail(fmt.Sprintf("value of format %d, formats up to %d are known", value[0], valueFormat))
		return r
	}
	r.rest = value[1:]
	return r
}

func (r *reader) fail(what string) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s", storage.ErrFormat, what)
	}
	r.rest = nil
}

func (r *reader) int() int64 {
	n, size := binary.Uvarint(r.rest)
	if size <= 0 || n > math.MaxInt64 {
		r.fail("damaged number")
		return 0
	}
	r.rest = r.rest[size:]
	return int64(n)
}

// small reads a number from 0 to most.
func (r *reader) small(most int) int {
	n := r.int()
	if n > int64(most) {
		r.fail("number out of range")
		return 0
	}
	return int(n)
}

func (r *reader) byte() byte {
	if len(r.rest) == 0 {
		r.fail("missing byte")
		return 0
	}
	b := r.rest[0]
	r.rest = r.rest[1:]
	return b
}

func (r *reader) bool() bool { return r.small(1) == 1 }

func (r *reader) bytes() []byte {
	n := r.int()
	if n > int64(len(r.rest)) {
		r.fail("damaged length")
		return nil
	}
	b := r.rest[:n:n]
	r.rest = r.rest[n:]
	return b
}

func (r *reader) string() string { return string(r.bytes()) }

// end returns the error of the whole, trailing bytes included.
func (r *reader) end() error {
	if r.err == nil && len(r.rest) > 0 {
		r.fail("trailing bytes")
	}
	return r.err
}

// What a record has beside the minimum, as bits of the second byte of R and U.
const (
	hasSeq = 1 << iota // another one than the key says
	hasKey
	hasPriority
	hasFirstDue // another one than due
	hasExpireIn
	hasDedupFor
	hasMaxAttempts
	isEarly // due before it was enqueued
)

// appendRecord encodes R and U: what the producer said, without the payload, which follows. The
// sequence is left out where the key has the same.
func appendRecord(dst []byte, r *record, seq int64) []byte {
	at := len(dst) + 1
	dst = append(dst, valueFormat, 0)
	has := byte(0)
	note := func(bit byte, n int64) {
		has |= bit
		dst = appendInt(dst, n)
	}
	dst = appendString(dst, r.id)
	dst = appendInt(dst, r.enqueued)
	if r.due < r.enqueued {
		note(isEarly, r.enqueued-r.due)
	} else {
		dst = appendInt(dst, r.due-r.enqueued)
	}
	if r.seq != seq {
		note(hasSeq, r.seq)
	}
	if r.key != "" {
		has |= hasKey
		dst = appendString(dst, r.key)
	}
	if r.priority != 0 {
		note(hasPriority, int64(r.priority))
	}
	if r.firstDue != r.due {
		note(hasFirstDue, r.firstDue)
	}
	if r.expireIn != 0 {
		note(hasExpireIn, r.expireIn)
	}
	if r.dedupFor != 0 {
		note(hasDedupFor, r.dedupFor)
	}
	if r.maxAttempts != 0 {
		note(hasMaxAttempts, int64(r.maxAttempts))
	}
	dst[at] = has
	return dst
}

// decodeRecord returns the record that has a sequence unless its value says otherwise, and the bytes
// of its payload, which belong to value.
func decodeRecord(value []byte, seq int64) (*record, []byte, error) {
	d := read(value)
	if d.err == nil && d.format < valueFormat {
		return d.earlyRecord()
	}
	has := d.byte()
	r := &record{seq: seq, id: d.string(), enqueued: d.int(), state: storage.Ready}
	if has&isEarly != 0 {
		r.due = r.enqueued - d.int()
	} else {
		r.due = r.enqueued + d.int()
	}
	if has&hasSeq != 0 {
		r.seq = d.int()
	}
	if has&hasKey != 0 {
		r.key = d.string()
	}
	if has&hasPriority != 0 {
		r.priority = d.small(storage.MaxPriority)
	}
	r.firstDue = r.due
	if has&hasFirstDue != 0 {
		r.firstDue = d.int()
	}
	if has&hasExpireIn != 0 {
		r.expireIn = d.int()
	}
	if has&hasDedupFor != 0 {
		r.dedupFor = d.int()
	}
	if has&hasMaxAttempts != 0 {
		r.maxAttempts = d.small(storage.MaxAttempts)
	}
	if r.id == "" || r.due < 0 {
		d.fail("record without id or due time")
	}
	return r, d.rest, d.err
}

// earlyRecord is decodeRecord for the first two formats.
func (d *reader) earlyRecord() (*record, []byte, error) {
	r := &record{
		seq: d.int(), id: d.string(), key: d.string(), priority: d.small(storage.MaxPriority),
		enqueued: d.int(), due: d.int(), firstDue: d.int(), expireIn: d.int(), dedupFor: d.int(),
		maxAttempts: d.small(storage.MaxAttempts),
		state:       storage.Ready,
	}
	if r.id == "" {
		d.fail("record without id")
	}
	return r, d.rest, d.err
}

// encodeState encodes S and L: what became of the record since.
func encodeState(r *record) []byte {
	dst := append(make([]byte, 0, 48+len(r.reason)+len(r.by)), valueFormat, byte(r.state))
	dst = appendInt(dst, r.due)
	dst = appendInt(dst, int64(r.attempts))
	dst = appendInt(dst, int64(r.deliveries))
	dst = appendString(dst, r.reason)
	dst = appendBool(dst, r.successor)
	dst = appendInt(dst, int64(len(r.history)))
	for i := range r.history {
		a := &r.history[i]
		dst = appendInt(dst, int64(a.Delivery))
		dst = appendInt(dst, a.Ended.UnixMilli())
		dst = appendString(dst, a.By)
		dst = appendString(dst, a.Reason)
	}
	switch r.state {
	case storage.Leased:
		dst = appendInt(dst, r.token)
		dst = appendInt(dst, r.until)
		dst = appendString(dst, r.by)
	case storage.Dead:
		dst = appendInt(dst, r.finished)
		dst = appendBool(dst, r.untold)
	case storage.Done:
		dst = appendInt(dst, r.finished)
		dst = appendInt(dst, r.size)
	default:
	}
	return dst
}

// decodeState changes a record decoded from R to what S or L says.
func decodeState(value []byte, r *record) error {
	d := read(value)
	r.state = storage.State(d.small(int(storage.Done)))
	r.due = d.int()
	r.attempts = d.small(math.MaxInt32)
	r.deliveries = d.small(math.MaxInt32)
	r.reason = d.string()
	r.successor = d.bool()
	if d.format > firstFormat {
		r.history = d.history()
	}
	switch r.state {
	case storage.Ready:
	case storage.Leased:
		r.token, r.until, r.by = d.int(), d.int(), d.string()
	case storage.Dead:
		r.finished = d.int()
		r.untold = d.format > firstFormat && d.bool()
	case storage.Done:
		r.finished, r.size = d.int(), d.int()
	default:
		d.fail("unknown state")
	}
	return d.end()
}

func (r *reader) history() []storage.Attempt {
	n := r.small(storage.MaxHistory)
	if n == 0 {
		return nil
	}
	history := make([]storage.Attempt, n)
	for i := range history {
		history[i] = storage.Attempt{
			Delivery: r.small(math.MaxInt32), Ended: instant(r.int()), By: r.string(), Reason: r.string(),
		}
	}
	return history
}
