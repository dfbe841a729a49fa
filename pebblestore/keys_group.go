// SPDX-License-Identifier: Apache-2.0

package pebblestore

import (
	"bytes"
	"fmt"
	"math"

	"github.com/bidemq/bide/storage"
)

// keyedPrefix is what the places of the waiting records of a priority begin with that have a key.
func keyedPrefix(queue string, priority int) []byte {
	return append(prefix(kindKeyed, queue), byte(storage.MaxPriority-priority))
}

func keyedKey(queue string, priority int, p place) []byte {
	return appendPlace(keyedPrefix(queue, priority), p)
}

// memberPrefix is what the waiting records of a key begin with. Keys hold no control characters.
func memberPrefix(queue, key string) []byte { return append(idKey(kindMember, queue, key), 0) }

func memberKey(queue, key string, p place) []byte { return appendPlace(memberPrefix(queue, key), p) }

// parseMember reads the key from what follows the prefix of a member.
func parseMember(rest []byte) (key string, err error) {
	if len(rest) < 18 || rest[len(rest)-17] != 0 {
		return "", fmt.Errorf("%w: member without key", storage.ErrFormat)
	}
	return string(rest[:len(rest)-17]), nil
}

func turnPrefix(queue string, priority int) []byte {
	return append(prefix(kindTurn, queue), byte(storage.MaxPriority-priority))
}

func turnKey(queue, key string, t turn) []byte {
	return append(appendPlace(turnPrefix(queue, t.priority), t.place), key...)
}

func sizeKey(queue, key string, waiting int64) []byte {
	return append(appendNumber(prefix(kindSize, queue), math.MaxInt64-waiting), key...)
}

func headKey(queue, key string, due int64) []byte {
	return append(appendNumber(prefix(kindHead, queue), due), key...)
}

func idleKey(queue, key string, since int64) []byte {
	return append(appendNumber(prefix(kindIdle, queue), since), key...)
}

// parseTurn reads the place of a turn and the key from what follows its priority.
func parseTurn(rest []byte) (p place, key []byte, err error) {
	if len(rest) < 17 {
		return place{}, nil, fmt.Errorf("%w: turn of %d bytes", storage.ErrFormat, len(rest))
	}
	p, err = parsePlace(rest[:16])
	return p, rest[16:], err
}

// parseNumbered reads the number and the key from what follows the prefix of a size, head or idle
// key.
func parseNumbered(rest []byte) (n int64, key string, err error) {
	if len(rest) < 9 {
		return 0, "", fmt.Errorf("%w: key of %d bytes", storage.ErrFormat, len(rest))
	}
	n, err = number(rest[:8])
	return n, string(rest[8:]), err
}

// keyOf is the key that a key of an index of keys ends with.
func keyOf(kind byte, rest []byte) (string, error) {
	if kind == kindTurn {
		if len(rest) == 0 {
			return "", fmt.Errorf("%w: turn without priority", storage.ErrFormat)
		}
		_, key, err := parseTurn(rest[1:])
		return string(bytes.Clone(key)), err
	}
	_, key, err := parseNumbered(rest)
	return key, err
}
