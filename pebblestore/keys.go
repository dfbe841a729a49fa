// SPDX-License-Identifier: Apache-2.0

package pebblestore

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/bidemq/bide/storage"
)

// The first byte of a key, see the package comment.
const (
	kindQueue     = 'Q'
	kindRecord    = 'R'
	kindState     = 'S'
	kindLease     = 'L' // of the first two formats
	kindGrant     = 'C'
	kindSuccessor = 'U'
	kindWaiting   = 'W'
	kindExpiry    = 'X'
	kindDead      = 'D'
	kindID        = 'I'
	kindFinished  = 'F'
	kindWindow    = 'V'
	kindEnding    = 'E'
	kindDone      = 'O'
	kindUntold    = 'P'

	// Of records with a key and of their keys, see keys_group.go.
	kindKeyed  = 'Y'
	kindMember = 'G'
	kindKey    = 'K'
	kindTurn   = 'T'
	kindSize   = 'N'
	kindHead   = 'H'
	kindIdle   = 'J'
)

// place orders records by an instant in Unix milliseconds, then by arrival.
type place struct{ at, seq int64 }

func (p place) less(o place) bool { return p.at < o.at || p.at == o.at && p.seq < o.seq }

// next is the least place after p.
func (p place) next() place { return place{p.at, p.seq + 1} }

// prefix is what all keys of one kind in one queue begin with. It has room for what follows.
func prefix(kind byte, queue string) []byte {
	b := make([]byte, 0, len(queue)+32)
	b = append(b, kind)
	b = append(b, queue...)
	return append(b, 0)
}

// appendNumber appends a number that is not negative, so that byte order is numeric order.
func appendNumber(dst []byte, n int64) []byte { return binary.BigEndian.AppendUint64(dst, uint64(n)) }

func appendPlace(dst []byte, p place) []byte { return appendNumber(appendNumber(dst, p.at), p.seq) }

func seqKey(kind byte, queue string, seq int64) []byte {
	return appendNumber(prefix(kind, queue), seq)
}

func placeKey(kind byte, queue string, p place) []byte { return appendPlace(prefix(kind, queue), p) }

func waitingPrefix(queue string, priority int) []byte {
	return append(prefix(kindWaiting, queue), byte(storage.MaxPriority-priority))
}

func waitingKey(queue string, priority int, p place) []byte {
	return appendPlace(waitingPrefix(queue, priority), p)
}

func idKey(kind byte, queue, id string) []byte { return append(prefix(kind, queue), id...) }

func finishedPrefix(queue, id string) []byte { return append(idKey(kindFinished, queue, id), 0) }

func finishedKey(queue, id string, seq int64) []byte {
	return appendNumber(finishedPrefix(queue, id), seq)
}

func endingKey(queue, id string, end int64) []byte {
	return append(appendNumber(prefix(kindEnding, queue), end), id...)
}

// after returns the least key above all that begin with prefix.
func after(prefix []byte) []byte {
	end := bytes.Clone(prefix)
	end[len(end)-1]++ // prefixes end in zero, a priority or an ASCII letter
	return end
}

// number reads the number that a key or value ends with.
func number(b []byte) (int64, error) {
	if len(b) < 8 {
		return 0, fmt.Errorf("%w: number of %d bytes", storage.ErrFormat, len(b))
	}
	n := int64(binary.BigEndian.Uint64(b[len(b)-8:]))
	if n < 0 {
		return 0, fmt.Errorf("%w: negative number", storage.ErrFormat)
	}
	return n, nil
}

// parsePlace reads the place that a key ends with.
func parsePlace(key []byte) (place, error) {
	seq, err := number(key)
	if err != nil {
		return place{}, err
	}
	at, err := number(key[:len(key)-8])
	return place{at, seq}, err
}

// parseEnding reads the end and the id of a dedup window from what follows the prefix of its key.
func parseEnding(rest []byte) (end int64, id string, err error) {
	if len(rest) < 8 {
		return 0, "", fmt.Errorf("%w: window of %d bytes", storage.ErrFormat, len(rest))
	}
	end, err = number(rest[:8])
	return end, string(rest[8:]), err
}

// parseFinished reads the id from what follows the prefix of a key.
func parseFinished(rest []byte) (id string, err error) {
	if len(rest) < 10 || rest[len(rest)-9] != 0 {
		return "", fmt.Errorf("%w: finished key without id", storage.ErrFormat)
	}
	return string(rest[:len(rest)-9]), nil
}
