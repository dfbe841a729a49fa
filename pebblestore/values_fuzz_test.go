// SPDX-License-Identifier: Apache-2.0

package pebblestore

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/storage"
)

// What is read from any bytes, of any format, is written such that it is read the same again; so a
// value that is damaged and taken nevertheless has a meaning, and only one. All else is ErrFormat.
func FuzzReadAgain(f *testing.F) {
	r := &record{id: "id", key: "key", seq: 7, enqueued: 5, due: 3, firstDue: 3, priority: 9, expireIn: 1, dedupFor: 2, maxAttempts: 3, state: storage.Leased, by: "me", reason: "why"}
	r.history = []storage.Attempt{{Delivery: 1, Ended: instant(9), By: "me", Reason: "why"}}
	for _, seed := range [][]byte{
		appendPayload(appendRecord(nil, r, 1), payload{[]byte("body"), map[string]string{"a": "b", "": "c"}}),
		appendPayload(appendRecord(nil, r, 7), payload{}), encodeState(r), newQueue("q").encode(),
		{firstFormat, 1, 1, 'a', 0, 0, 1, 1, 1, 0, 0, 0, 0},
		{2, 1, 1, 'a', 0, 0, 1, 1, 1, 0, 0, 0, 0, 0},
		encodeGroup(groupState{waiting: 1, headed: true}), encodeMember(member{due: 1}),
		(&lock{until: 1, token: 2, owner: "o"}).encode(), (&locks{last: 1, clock: 2}).encode(),
		{},
		{0},
		{valueFormat + 1},
	} {
		f.Add(seed)
	}
	queueValue := newQueue("q").encode()
	f.Add(append(appendInt([]byte{valueFormat, 0}, 10_000_000_000_000), queueValue[3:]...)) // a span that no time.Duration holds
	far := newQueue("q")
	far.config = storage.QueueConfig{Ordered: true, Linger: storage.MaxDelay, Overflow: storage.DropOldest, RetainBytes: 1 << 62}
	f.Add(far.encode())
	f.Fuzz(func(t *testing.T, value []byte) {
		same := func(got, want any, err error) {
			assert.NoError(t, err)
			if diff := cmp.Diff(want, got, unexported()); diff != "" {
				t.Fatal(diff)
			}
		}
		taken := func(err error) bool {
			if err != nil {
				assert.ErrorIs(t, err, storage.ErrFormat)
			}
			return err == nil
		}
		if one, rest, err := decodeRecord(value, 1); taken(err) {
			two, left, err := decodeRecord(appendRecord(nil, one, 1), 1)
			same(two, one, err)
			assert.Equal(t, len(left), 0)
			assert.True(t, one.id != "" && one.due >= 0 && one.firstDue >= 0 && one.seq >= 0, one)
			p, size, err := decodePayload(rest)
			n, err2 := payloadSize(rest)
			assert.True(t, (err == nil) == (err2 == nil), err, err2)
			if taken(err) {
				assert.Equal(t, n, int64(size))
				q, _, err := decodePayload(appendPayload(nil, p))
				assert.NoError(t, err)
				assert.True(t, string(q.body) == string(p.body))
				assert.Equal(t, q.headers, p.headers)
			}
		}
		one := &record{}
		if taken(decodeState(value, one)) {
			two := &record{}
			err := decodeState(encodeState(one), two)
			same(two, one, err)
		}
		q1 := newQueue("q")
		if taken(q1.decode(value)) {
			q2 := newQueue("q")
			q2.outdated = q1.outdated
			err := q2.decode(q1.encode())
			same(q2, q1, err)
			c := q1.config
			assert.True(t, min(c.ExpireIn, c.Linger, c.KeyIdle, c.RetainFor, c.DeadFor) >= 0, c)
		}
		if g, err := decodeGroup(value); taken(err) {
			again, err := decodeGroup(encodeGroup(g))
			assert.NoError(t, err)
			assert.True(t, again == g, again, g)
		}
		if m, err := decodeMember(place{1, 2}, value); taken(err) {
			again, err := decodeMember(place{1, 2}, encodeMember(m))
			assert.NoError(t, err)
			assert.True(t, again == m, again, m)
		}
		if l, err := decodeLock("l", value); taken(err) {
			again, err := decodeLock("l", l.encode())
			assert.NoError(t, err)
			assert.True(t, *again == *l, again, l)
		}
		l := newLocks()
		if taken(l.decode(value)) {
			again := newLocks()
			assert.NoError(t, again.decode(l.encode()))
			assert.True(t, again.last == l.last && again.clock == l.clock, again)
		}
	})
}
