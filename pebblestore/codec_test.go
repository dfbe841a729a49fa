// SPDX-License-Identifier: Apache-2.0

package pebblestore

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/storage"
)

// equalRecords compares records but for what is not stored in the values.
func equalRecords(a, b *record) bool {
	x, y := *a, *b
	x.stateful, y.stateful, x.heap, y.heap = false, false, 0, 0
	return cmp.Equal(x, y, unexported())
}

func FuzzRecord(f *testing.F) {
	f.Add("id", "key", 9, int64(1), int64(1_700_000_000_000), int64(0), []byte("body"), "name", "value", byte(storage.Leased), "reason", "by", true)
	f.Add("a", "", 0, int64(1)<<52, int64(0), int64(7), []byte{}, "", "", byte(storage.Dead), "", "", false)
	f.Fuzz(func(t *testing.T, id, key string, priority int, seq, due, rest int64, body []byte, name, value string, state byte, reason, by string, successor bool) {
		r := &record{
			id: id, key: key, priority: priority, seq: seq, due: due, enqueued: rest, firstDue: rest, expireIn: rest, dedupFor: rest,
			maxAttempts: int(rest % (storage.MaxAttempts + 1)), attempts: 3, deliveries: 4,
			state: storage.State(state), reason: reason, successor: successor,
		}
		if id == "" || priority < 0 || priority > storage.MaxPriority || seq < 0 || due < 0 || rest < 0 {
			return
		}
		switch r.state {
		case storage.Leased:
			r.token, r.until, r.by = seq, due, by
			r.history = []storage.Attempt{{Delivery: 3, Ended: instant(due), By: by, Reason: reason}, {Ended: instant(rest)}}
		case storage.Dead:
			r.finished, r.untold = due, successor
		case storage.Done:
			r.finished, r.size = due, rest
		case storage.Ready:
		default:
			return
		}
		p, at := payload{body: body}, []int64{seq, 0}[seq%2]
		if name != "" {
			p.headers = map[string]string{name: value}
		}
		got, encoded, err := decodeRecord(appendPayload(appendRecord(nil, r, at), p), at)
		assert.NoError(t, err)
		assert.NoError(t, decodeState(encodeState(r), got))
		if !equalRecords(got, r) {
			t.Fatalf("got %+v, want %+v", got, r)
		}
		content, size, err := decodePayload(encoded)
		assert.NoError(t, err)
		assert.True(t, bytes.Equal(content.body, body))
		assert.Equal(t, content.headers, p.headers)
		want := len(body)
		if name != "" {
			want += len(name) + len(value)
		}
		assert.Equal(t, size, want)
	})
}

// Damaged bytes give an error or a record, never a panic, and the error is ErrFormat.
func FuzzDamagedValue(f *testing.F) {
	r := &record{id: "id", key: "key", state: storage.Leased, by: "me", reason: "why"}
	value := appendPayload(appendRecord(nil, r, 1), payload{[]byte("body"), map[string]string{"a": "b"}})
	f.Add(value)
	f.Add(value[:len(value)-3])
	f.Add(encodeState(r))
	f.Add(newQueue("q").encode())
	f.Add([]byte{})
	f.Add([]byte{firstFormat, 1, 1})
	f.Add(encodeGroup(groupState{waiting: 1}))
	f.Add(memberKey("q", "key", place{1, 2}))
	f.Fuzz(func(t *testing.T, value []byte) {
		check := func(err error) {
			if err != nil && !errors.Is(err, storage.ErrFormat) {
				t.Fatalf("got %v, want ErrFormat", err)
			}
		}
		_, encoded, err := decodeRecord(value, 1)
		check(err)
		_, _, err = decodePayload(encoded)
		check(err)
		check(decodeState(value, &record{}))
		check(newQueue("q").decode(value))
		_, err = parsePlace(value)
		check(err)
		_, _, err = parseEnding(value)
		check(err)
		_, err = parseFinished(value)
		check(err)
		_, err = parseMember(value)
		check(err)
		for _, kind := range []byte{kindTurn, kindSize} {
			_, err = keyOf(kind, value)
			check(err)
		}
		_, err = decodeMember(place{}, value)
		check(err)
		_, err = decodeGroup(value)
		check(err)
	})
}

// Other versions are refused.
func TestOtherValueFormat(t *testing.T) {
	value := appendRecord(nil, &record{id: "a"}, 1)
	value[0]++
	_, _, err := decodeRecord(value, 1)
	assert.ErrorIs(t, err, storage.ErrFormat)
}

// A record or a queue of another version is an error of every call that meets it, and of no other.
func TestOtherFormatInside(t *testing.T) {
	disk := vfs.NewMem()
	store, err := open("dir", Options{Logger: quiet}, disk)
	assert.NoError(t, err)
	now := time.UnixMilli(1_700_000_000_000)
	for _, queue := range []string{"good", "record", "queue"} {
		_, err := store.Enqueue(t.Context(), now, queue, []storage.Record{{ID: "a"}, {ID: "b"}})
		assert.NoError(t, err)
	}
	assert.NoError(t, store.Close())
	store, err = open("dir", Options{Logger: quiet}, disk) // which has not read the queues
	assert.NoError(t, err)
	assert.NoError(t, store.db.Set(seqKey(kindRecord, "record", 1), []byte{valueFormat + 1, 1, 1}, pebble.Sync))
	assert.NoError(t, store.db.Set(prefix(kindQueue, "queue"), []byte{valueFormat + 1}, pebble.Sync))
	assert.NoError(t, store.Close())
	store = openTest(t, Options{Logger: quiet}, disk)

	for _, queue := range []string{"record", "queue"} {
		_, err = store.Get(t.Context(), now, queue, "a")
		assert.ErrorIs(t, err, storage.ErrFormat)
		_, err = store.Claim(t.Context(), now, storage.Claim{Queue: queue, Limit: 1, Lease: time.Second})
		assert.ErrorIs(t, err, storage.ErrFormat)
		_, err = store.Repair(t.Context(), now, queue, storage.Repair{Limit: 10})
		assert.ErrorIs(t, err, storage.ErrFormat)
	}
	_, err = store.Get(t.Context(), now, "record", "b")
	assert.NoError(t, err)
	got, err := store.Claim(t.Context(), now, storage.Claim{Queue: "good", Limit: 2, Lease: time.Second})
	assert.NoError(t, err)
	assert.Equal(t, len(got.Records), 2)
}

// unexported lets cmp look into everything that has a codec.
func unexported() cmp.Option {
	return cmp.AllowUnexported(record{}, queue{}, bound{}, place{}, tide{}, leases{}, replaces{}, ahead{}, recent{}, voids{})
}

func TestQueueValue(t *testing.T) {
	for _, keyed := range []bool{false, true} {
		q := newQueue("q")
		q.config = storage.QueueConfig{Paused: true, ExpireIn: 5_000_000, MaxDeliveries: 7}
		q.seq, q.token, q.clock, q.windows, q.due = 1, 2, 3, 4, tide{5, 6}
		q.count = [...]int64{storage.Ready: 7, storage.Leased: 8, storage.Dead: 9, storage.Done: 10}
		for i, c := range append(q.counters(), q.lateCounters()...) {
			*c = int64(10 + i)
		}
		for i := range q.waiting {
			q.waiting[i] = bound{low: place{int64(i), int64(2 * i)}}
		}
		if keyed {
			q.config = storage.QueueConfig{
				Ordered: true, KeyLimit: 1, MinBatch: 2, Linger: time.Second, KeyIdle: time.Minute, MaxLen: 3, MaxPerKey: 4, Overflow: storage.DropOldest,
				RetainFor: time.Hour, RetainCount: 5, RetainBytes: 6, DeadFor: 7 * time.Hour, DeadCount: 8, TellDead: true,
			}
			q.keys, q.retained, q.replacing = 11, 12, replaces{true, "key", 13}
			for i := range q.keyed {
				q.keyed[i], q.turns[i] = bound{low: place{int64(i), 3}}, bound{low: place{4, int64(i)}}
			}
		}
		got := newQueue("q")
		assert.NoError(t, got.decode(q.encode()))
		q.expiring, q.ending, q.done, q.dead = bound{}, bound{}, bound{}, bound{}
		if diff := cmp.Diff(q, got, unexported()); diff != "" {
			t.Fatal(diff)
		}
	}
}

func TestGroupValue(t *testing.T) {
	want := groupState{
		waiting: 1, served: 2, number: 3, joined: 4, idle: 5, headed: true, placed: true,
		head: member{place{6, 7}, 8, 9, true}, turn: turn{place{10, 11}, 2},
	}
	got, err := decodeGroup(encodeGroup(want))
	assert.NoError(t, err)
	assert.True(t, got == want, got)
	m, err := decodeMember(want.head.place, encodeMember(want.head))
	assert.NoError(t, err)
	assert.True(t, m == want.head, m)
}

// Keys sort as what they stand for does.
func FuzzKeys(f *testing.F) {
	f.Add("q", int64(1), int64(2), 3, "q", int64(1), int64(3), 9)
	f.Add("a", int64(0), int64(1)<<62, 0, "a.b", int64(255), int64(256), 1)
	f.Fuzz(func(t *testing.T, q1 string, at1, seq1 int64, prio1 int, q2 string, at2, seq2 int64, prio2 int) {
		if storage.CheckQueue(q1) != nil || storage.CheckQueue(q2) != nil || at1 < 0 || at2 < 0 || seq1 < 0 || seq2 < 0 ||
			prio1 < 0 || prio1 > storage.MaxPriority || prio2 < 0 || prio2 > storage.MaxPriority {
			return
		}
		p1, p2 := place{at1, seq1}, place{at2, seq2}
		k1, k2 := waitingKey(q1, prio1, p1), waitingKey(q2, prio2, p2)
		got := bytes.Compare(k1, k2) < 0
		want := p1.less(p2)
		if prio1 != prio2 {
			want = prio1 > prio2
		}
		if q1 != q2 {
			want = q1+"\x00" < q2+"\x00"
		}
		assert.Equal(t, got, want)
		parsed, err := parsePlace(k1)
		assert.NoError(t, err)
		assert.True(t, parsed == p1)
		all := waitingPrefix(q1, prio1)
		assert.True(t, bytes.HasPrefix(k1, all) && bytes.Compare(k1, after(all)) < 0)
		if q1 != q2 {
			assert.True(t, !bytes.HasPrefix(k2, prefix(kindWaiting, q1)))
		}
	})
}
