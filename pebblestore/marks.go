// SPDX-License-Identifier: Apache-2.0

package pebblestore

import "hash/maphash"

// marks are a set of ids of queues that may have too many, and never too few: a Bloom filter. Of a
// thousand ids added, about one in four thousand others is taken for one of them.
type marks struct {
	seed maphash.Seed
	bits [markBits / 64]uint64
	set  []uint64 // those of the words that have any, up to markWords
}

const (
	markBits  = 1 << 17
	markWords = 512
)

// salt makes ids of one queue differ from the same ids of another one.
func (m *marks) salt(queue string) uint64 { return maphash.String(m.seed, queue) }

func (m *marks) add(salt uint64, id string) {
	a, b := m.slots(salt, id)
	m.bits[a/64] |= 1 << (a % 64)
	m.bits[b/64] |= 1 << (b % 64)
	if len(m.set) < markWords {
		m.set = append(m.set, a/64, b/64)
	}
}

func (m *marks) has(salt uint64, id string) bool {
	if len(m.set) == 0 {
		return false
	}
	a, b := m.slots(salt, id)
	return m.bits[a/64]&(1<<(a%64)) != 0 && m.bits[b/64]&(1<<(b%64)) != 0
}

func (m *marks) slots(salt uint64, id string) (a, b uint64) {
	h := maphash.String(m.seed, id) ^ salt
	return h % markBits, (h >> 32) % markBits
}

func (m *marks) clear() {
	if len(m.set) >= markWords {
		clear(m.bits[:])
	}
	for _, word := range m.set {
		m.bits[word] = 0
	}
	m.set = m.set[:0]
}
