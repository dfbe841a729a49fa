// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/bidemq/bide/storage"
)

// Sizes in bytes of what record.lua calls RECORD and PROGRESS.
const (
	recordSize   = 45
	progressSize = 36
)

// appendUint appends the low n bytes of v, big-endian.
func appendUint(b []byte, v int64, n int) []byte {
	for i := n - 1; i >= 0; i-- {
		b = append(b, byte(v>>(8*i)))
	}
	return b
}

// uintAt reads n bytes, big-endian.
func uintAt[T string | []byte](s T, at, n int) int64 {
	v := int64(0)
	for i := at; i < at+n; i++ {
		v = v<<8 | int64(s[i])
	}
	return v
}

// appendTerms appends what enqueue.lua looks at: see ARGV there.
func appendTerms(b []byte, r *storage.Record) []byte {
	b = append(b, byte(r.Priority), byte(r.OnLive))
	if r.Due.IsZero() {
		b = appendUint(append(b, 1), length(r.Delay), 6)
	} else {
		b = appendUint(append(b, 0), storage.DueMilli(r.Due), 6)
	}
	return appendUint(b, length(r.ExpireIn), 6)
}

// rest is the part of a stored record that the producer alone decides, from expire in on.
func rest(r *storage.Record) string {
	headers, size := encodeHeaders(r.Headers)
	head := make([]byte, 0, 26)
	head = appendUint(head, length(r.ExpireIn), 6)
	head = appendUint(head, length(r.DedupFor), 6)
	head = appendUint(head, int64(r.MaxAttempts), 4)
	head = appendUint(head, int64(len(r.Key)), 2)
	head = appendUint(head, int64(len(headers)), 4)
	head = appendUint(head, int64(size), 4)
	var b strings.Builder // which copies the body once
	b.Grow(len(head) + len(r.Key) + len(headers) + len(r.Body))
	b.Write(head)
	b.WriteString(r.Key)
	b.Write(headers)
	b.Write(r.Body)
	return b.String()
}

// encodeHeaders returns each name and value behind its length, and how long they are themselves.
func encodeHeaders(headers map[string]string) (encoded []byte, size int) {
	for name, value := range headers {
		encoded = append(binary.AppendUvarint(encoded, uint64(len(name))), name...)
		encoded = append(binary.AppendUvarint(encoded, uint64(len(value))), value...)
		size += len(name) + len(value)
	}
	return encoded, size
}

func decodeHeaders(encoded []byte) (map[string]string, error) {
	if len(encoded) == 0 {
		return nil, nil
	}
	headers := map[string]string{}
	rest := encoded
	text := func() (string, bool) {
		n, used := binary.Uvarint(rest)
		if used <= 0 || n > uint64(len(rest)-used) {
			return "", false
		}
		s := string(rest[used : used+int(n)])
		rest = rest[used+int(n):]
		return s, true
	}
	for len(rest) > 0 {
		name, ok := text()
		value, ok2 := text()
		if !ok || !ok2 {
			return nil, fmt.Errorf("%w: headers of %d bytes are damaged", storage.ErrFormat, len(encoded))
		}
		headers[name] = value
	}
	return headers, nil
}

func damaged(id string) error { return fmt.Errorf("%w: record %q is damaged", storage.ErrFormat, id) }

// decode reads a stored record, whose body stays where it is in the blob. A negative instant of death is
// that of the living.
func decode(id string, blob []byte, progress string, finished int64, now time.Time) (storage.Record, error) {
	if len(blob) < recordSize || len(progress) < progressSize && progress != "" {
		return storage.Record{}, damaged(id)
	}
	keyLen, headLen := int(uintAt(blob, 35, 2)), int(uintAt(blob, 37, 4))
	if len(blob) < recordSize+keyLen+headLen {
		return storage.Record{}, damaged(id)
	}
	headers, err := decodeHeaders(blob[recordSize+keyLen : recordSize+keyLen+headLen])
	if err != nil {
		return storage.Record{}, err
	}
	r := storage.Record{
		ID:          id,
		Key:         string(blob[recordSize : recordSize+keyLen]),
		Priority:    int(blob[0]),
		Headers:     headers,
		ExpireIn:    time.Duration(uintAt(blob, 19, 6)) * time.Millisecond,
		MaxAttempts: int(uintAt(blob, 31, 4)),
		DedupFor:    time.Duration(uintAt(blob, 25, 6)) * time.Millisecond,
		Seq:         uintAt(blob, 1, 6),
		FirstDue:    instant(uintAt(blob, 7, 6)),
		Enqueued:    instant(uintAt(blob, 13, 6)),
	}
	if body := blob[recordSize+keyLen+headLen:]; len(body) > 0 {
		r.Body = body
	}
	r.Due = r.FirstDue
	leased, done := false, false
	if progress != "" {
		byLen := int(uintAt(progress, 34, 2))
		if len(progress) < progressSize+byLen {
			return storage.Record{}, damaged(id)
		}
		leased = progress[0]&1 != 0
		r.Successor = progress[0]&2 != 0
		r.Due = instant(uintAt(progress, 7, 6))
		r.Attempts = int(uintAt(progress, 13, 4))
		r.Deliveries = int(uintAt(progress, 17, 4))
		r.Reason = progress[progressSize+byLen:]
		if progress[0]&16 != 0 {
			var err error
			if r.Reason, r.History, err = decodeHistory(r.Reason); err != nil {
				return storage.Record{}, damaged(id)
			}
		}
		done, r.Untold = progress[0]&8 != 0, progress[0]&64 != 0
		if leased {
			r.Lease = storage.Lease{
				Token: uintAt(progress, 21, 7),
				Until: instant(uintAt(progress, 28, 6)),
				By:    progress[progressSize : progressSize+byLen],
			}
		}
	}
	switch {
	case finished >= 0 && done:
		r.State, r.Finished = storage.Done, instant(finished)
	case finished >= 0:
		r.State, r.Finished = storage.Dead, instant(finished)
	case leased:
		r.State = storage.Leased
	case r.Due.After(now):
		r.State = storage.Delayed
	default:
		r.State = storage.Ready
	}
	return r, nil
}

var errHistory = errors.New("history is damaged")

// decodeHistory reads what stands behind the claimer in a progress with a history, see record.lua.
func decodeHistory(tail string) (reason string, history []storage.Attempt, err error) {
	if len(tail) < 2 || len(tail) < 3+int(uintAt(tail, 0, 2)) {
		return "", nil, errHistory
	}
	n := 2 + int(uintAt(tail, 0, 2))
	reason, tail = tail[2:n], tail[n:]
	history = make([]storage.Attempt, tail[0])
	tail = tail[1:]
	for i := range history {
		if len(tail) < 13 {
			return "", nil, errHistory
		}
		by, said := int(uintAt(tail, 10, 2)), int(tail[12])
		if len(tail) < 13+by+said {
			return "", nil, errHistory
		}
		history[i] = storage.Attempt{
			Delivery: int(uintAt(tail, 0, 4)),
			Ended:    instant(uintAt(tail, 4, 6)),
			By:       tail[13 : 13+by],
			Reason:   tail[13+by : 13+by+said],
		}
		tail = tail[13+by+said:]
	}
	return reason, history, nil
}

// decodeRows reads rows of id, record, progress and instant of death.
func decodeRows(row []rueidis.RedisMessage, now time.Time) ([]storage.Record, error) {
	records := make([]storage.Record, 0, len(row)/4)
	for ; len(row) >= 4; row = row[4:] {
		finished, err := row[3].AsInt64()
		if err != nil {
			return nil, err
		}
		r, err := decodeTexts(row, finished, now)
		if err != nil {
			return nil, err
		}
		records = append(records, r)
	}
	return records, nil
}

// decodeTexts reads id, record and progress.
func decodeTexts(row []rueidis.RedisMessage, finished int64, now time.Time) (storage.Record, error) {
	id, err := row[0].ToString()
	blob, err2 := row[1].AsBytes()
	progress, err3 := row[2].ToString()
	if err := cmp.Or(err, err2, err3); err != nil {
		return storage.Record{}, err
	}
	return decode(id, blob, progress, finished, now)
}
