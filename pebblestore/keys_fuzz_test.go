// SPDX-License-Identifier: Apache-2.0

package pebblestore

import (
	"bytes"
	"cmp"
	"testing"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/storage"
)

// Keys of keys sort as what they stand for does, say what they were made of, and lie in their range
// alone.
func FuzzKeysOfKeys(f *testing.F) {
	f.Add("q", "a", int64(1), int64(2), 3, "q", "ab", int64(1), int64(2), 3)
	f.Add("a", "k", int64(0), int64(1)<<62, 0, "a.b", "k", int64(255), int64(256), 1)
	f.Add("q", "k", int64(7), int64(7), 9, "q", "k", int64(7), int64(8), 9)
	f.Add("q", "é", int64(0), int64(0), 0, "q", "é ", int64(0), int64(0), 0)
	f.Fuzz(func(t *testing.T, q1, k1 string, at1, seq1 int64, prio1 int, q2, k2 string, at2, seq2 int64, prio2 int) {
		for _, bad := range []bool{
			storage.CheckQueue(q1) != nil, storage.CheckQueue(q2) != nil, storage.CheckID(k1) != nil, storage.CheckID(k2) != nil,
			at1 < 0, at2 < 0, seq1 < 0, seq2 < 0, prio1 < 0, prio1 > storage.MaxPriority, prio2 < 0, prio2 > storage.MaxPriority,
		} {
			if bad {
				return
			}
		}
		p1, p2 := place{at1, seq1}, place{at2, seq2}
		queue := cmp.Compare(q1+"\x00", q2+"\x00")
		name := cmp.Compare(k1, k2)
		places := cmp.Or(cmp.Compare(p1.at, p2.at), cmp.Compare(p1.seq, p2.seq))
		assert.Equal(t, p1.less(p2), places < 0)
		for _, c := range []struct {
			kind byte
			a, b []byte
			want int
		}{
			{kindKeyed, keyedKey(q1, prio1, p1), keyedKey(q2, prio2, p2), cmp.Or(queue, cmp.Compare(prio2, prio1), places)},
			{kindMember, memberKey(q1, k1, p1), memberKey(q2, k2, p2), cmp.Or(queue, cmp.Compare(k1+"\x00", k2+"\x00"), places)},
			{kindTurn, turnKey(q1, k1, turn{p1, prio1}), turnKey(q2, k2, turn{p2, prio2}), cmp.Or(queue, cmp.Compare(prio2, prio1), places, name)},
			{kindSize, sizeKey(q1, k1, at1), sizeKey(q2, k2, at2), cmp.Or(queue, cmp.Compare(at2, at1), name)},
			{kindHead, headKey(q1, k1, at1), headKey(q2, k2, at2), cmp.Or(queue, cmp.Compare(at1, at2), name)},
			{kindIdle, idleKey(q1, k1, at1), idleKey(q2, k2, at2), cmp.Or(queue, cmp.Compare(at1, at2), name)},
			{kindEnding, endingKey(q1, k1, at1), endingKey(q2, k2, at2), cmp.Or(queue, cmp.Compare(at1, at2), name)},
			{kindFinished, finishedKey(q1, k1, seq1), finishedKey(q2, k2, seq2), cmp.Or(queue, cmp.Compare(k1+"\x00", k2+"\x00"), cmp.Compare(seq1, seq2))},
			{kindDead, placeKey(kindDead, q1, p1), placeKey(kindDead, q2, p2), cmp.Or(queue, places)},
			{kindRecord, seqKey(kindRecord, q1, seq1), seqKey(kindRecord, q2, seq2), cmp.Or(queue, cmp.Compare(seq1, seq2))},
			{kindID, idKey(kindID, q1, k1), idKey(kindID, q2, k2), cmp.Or(queue, name)},
		} {
			assert.Equal(t, bytes.Compare(c.a, c.b), c.want, string(c.kind))
			all := prefix(c.kind, q1)
			assert.True(t, bytes.HasPrefix(c.a, all) && bytes.Compare(c.a, after(all)) < 0, string(c.kind))
			assert.Equal(t, bytes.HasPrefix(c.b, all), q1 == q2, string(c.kind))
		}
		all := memberPrefix(q1, k1)
		member := memberKey(q2, k2, p2)
		assert.Equal(t, bytes.Compare(all, member) <= 0 && bytes.Compare(member, after(all)) < 0, q1 == q2 && k1 == k2)
	})
}

// What a key was made of is read from it again.
func FuzzKeyParts(f *testing.F) {
	f.Add("q", "key", int64(1), int64(2), 3)
	f.Add("q", "a", int64(1)<<62, int64(0), 9)
	f.Fuzz(func(t *testing.T, q, k string, at, seq int64, prio int) {
		if storage.CheckQueue(q) != nil || storage.CheckID(k) != nil || at < 0 || seq < 0 || prio < 0 || prio > storage.MaxPriority {
			return
		}
		p := place{at, seq}
		rest := func(kind byte, key []byte) []byte { return bytes.TrimPrefix(key, prefix(kind, q)) }
		for _, key := range [][]byte{waitingKey(q, prio, p), keyedKey(q, prio, p), memberKey(q, k, p), placeKey(kindDead, q, p)} {
			got, err := parsePlace(key)
			assert.NoError(t, err)
			assert.True(t, got == p, got)
		}
		name, err := parseMember(rest(kindMember, memberKey(q, k, p)))
		assert.NoError(t, err)
		assert.Equal(t, name, k)
		id, err := parseFinished(rest(kindFinished, finishedKey(q, k, seq)))
		assert.NoError(t, err)
		assert.Equal(t, id, k)
		end, id, err := parseEnding(rest(kindEnding, endingKey(q, k, at)))
		assert.NoError(t, err)
		assert.True(t, end == at && id == k, end, id)
		for kind, key := range map[byte][]byte{
			kindTurn: turnKey(q, k, turn{p, prio}), kindSize: sizeKey(q, k, at), kindHead: headKey(q, k, at), kindIdle: idleKey(q, k, at),
		} {
			name, err := keyOf(kind, rest(kind, key))
			assert.NoError(t, err)
			assert.Equal(t, name, k, string(kind))
		}
		got, _, err := parseTurn(rest(kindTurn, turnKey(q, k, turn{p, prio}))[1:])
		assert.NoError(t, err)
		assert.True(t, got == p, got)
		n, err := number(appendNumber(nil, seq))
		assert.NoError(t, err)
		assert.Equal(t, n, seq)
	})
}
