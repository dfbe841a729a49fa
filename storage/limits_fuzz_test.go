// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/storage"
)

// accepted fails unless an error is nil exactly if the argument is good, and ErrInvalid otherwise.
func accepted(t *testing.T, err error, good bool, context ...any) {
	t.Helper()
	if (err == nil) != good || err != nil && !errors.Is(err, storage.ErrInvalid) {
		t.Fatalf("got %v for %q, which is good: %t", err, context, good)
	}
}

// Names are what their documentation says: those of queues and topics are safe in keys and in hash
// tags of Redis, ids and names of locks hold no byte that separates one from another.
func FuzzNames(f *testing.F) {
	for _, s := range []string{
		"", "a", "order.timeout", "-a", "a b", "{a}", "a\x00b", "ü", "a\u0085", "a\x7f", "\xff", "a/b", "a\n",
		strings.Repeat("x", storage.MaxName), strings.Repeat("x", storage.MaxName+1),
		strings.Repeat("é", storage.MaxID/2), strings.Repeat("é", storage.MaxID/2) + "x",
	} {
		f.Add(s)
	}
	queue := regexp.MustCompile(`\A[A-Za-z0-9][A-Za-z0-9._:-]*\z`)
	f.Fuzz(func(t *testing.T, s string) {
		goodQueue := len(s) <= storage.MaxName && queue.MatchString(s)
		accepted(t, storage.CheckQueue(s), goodQueue, s)
		accepted(t, (&storage.TopicEdit{}).Check(s), goodQueue, s)
		accepted(t, (&storage.TopicEdit{Bind: []string{s}}).Check("t"), goodQueue, s)
		accepted(t, (&storage.TopicEdit{Bind: []string{s}, Unbind: []string{s}}).Check("t"), false, s)

		text := len(s) <= storage.MaxID && utf8.ValidString(s) && strings.IndexFunc(s, unicode.IsControl) < 0
		goodID := text && s != ""
		accepted(t, storage.CheckID(s), goodID, s)
		accepted(t, (&storage.Receipt{Queue: "q", ID: s}).Check(), goodID, s)
		accepted(t, (&storage.LockRequest{Name: s, Owner: "o", TTL: time.Second}).Check(time.Time{}), goodID, s)
		accepted(t, (&storage.LockRequest{Name: "n", Owner: s, TTL: time.Second}).Check(time.Time{}), goodID, s)
		accepted(t, (&storage.LockReceipt{Name: s, Owner: "o"}).Check(time.Time{}), goodID, s)
		accepted(t, (&storage.Record{ID: "a", Key: s}).Check(storage.DefaultBody), text, s)
		accepted(t, (&storage.Scope{Queue: "q", Except: []string{s}}).Check(), text, s)
		accepted(t, (&storage.Record{ID: "a", Headers: map[string]string{s: "v"}}).Check(storage.DefaultBody), goodID, s)
		accepted(t, (&storage.Record{ID: "a", Headers: map[string]string{"h": s}}).Check(len(s)+1), utf8.ValidString(s), s)
		err := (&storage.Record{ID: "a", Body: []byte(s)}).Check(8)
		assert.Equal(t, errors.Is(err, storage.ErrTooLarge), len(s) > 8, s)

		state, err := storage.ParseState(s)
		accepted(t, err, slices.Contains([]string{"delayed", "ready", "leased", "dead", "done"}, s), s)
		if err == nil {
			assert.Equal(t, state.String(), s)
		}
	})
}

// No rounding makes anything early, nor more than a millisecond late, and what is rounded stays so.
func FuzzRounding(f *testing.F) {
	f.Add(int64(0), int64(0))
	f.Add(int64(-1), int64(999_999_999))
	f.Add(int64(1)<<40, int64(1))
	f.Add(int64(253_402_300_799), int64(999_000_001)) // the last second of the year 9999
	f.Add(int64(7_258_118_400), int64(1))             // 2200
	f.Fuzz(func(t *testing.T, sec, rest int64) {
		d := time.Duration(rest)
		if d < 1<<62 {
			r := storage.Millis(d)
			assert.True(t, r >= d && r-d < time.Millisecond && storage.Millis(r) == r, d, r)
			assert.True(t, d < 0 || r%time.Millisecond == 0, d, r)
		}
		nsec := rest % int64(time.Second)
		if sec > 1<<40 || sec < -(1<<40) || nsec < 0 {
			return
		}
		at := time.Unix(sec, nsec)
		ms := storage.DueMilli(at)
		due := time.UnixMilli(ms)
		assert.True(t, ms >= 0 && !due.Before(at), at, ms)
		assert.True(t, at.Before(time.UnixMilli(0)) && ms == 0 || due.Sub(at) < time.Millisecond, at, ms)
		assert.Equal(t, storage.DueMilli(due), ms)
		accepted(t, storage.CheckNow(at), sec >= 0 && !at.After(time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)), at)
		accepted(t, (&storage.Record{ID: "a", Due: at}).Check(0), !at.After(time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)), at)
	})
}

// Reasons are cut at the border of a character, and a history keeps its latest attempts.
func FuzzReasons(f *testing.F) {
	f.Add("short", 3, byte(1))
	f.Add("x"+strings.Repeat("\u2603", 80), 13, byte(storage.MaxHistory))
	f.Add(strings.Repeat("\x80", 30), 60, byte(0))
	f.Fuzz(func(t *testing.T, s string, times int, n byte) {
		long := strings.Repeat(s, min(max(times, 0), 1100))
		got := storage.CutReason(long)
		assert.True(t, len(got) <= storage.MaxReason && strings.HasPrefix(long, got), got)
		assert.True(t, len(long) > storage.MaxReason || got == long, got)
		assert.True(t, !utf8.ValidString(long) || utf8.ValidString(got) && (got == long || len(got) > storage.MaxReason-utf8.UTFMax), got)

		history := make([]storage.Attempt, int(n)%(storage.MaxHistory+3))
		for i := range history {
			history[i].Delivery = i + 1
		}
		before := slices.Clone(history)
		noted := storage.Note(history, storage.Attempt{Delivery: len(history) + 1, Reason: long})
		assert.Equal(t, history, before)
		assert.Equal(t, len(noted), min(len(history)+1, storage.MaxHistory))
		last := noted[len(noted)-1]
		assert.True(t, len(last.Reason) <= storage.MaxNote && strings.HasPrefix(long, last.Reason), last.Reason)
		for i, a := range noted {
			assert.Equal(t, a.Delivery, len(history)+2-len(noted)+i)
		}
	})
}

// The bindings of a topic are a set, and every edit of it does what it says and no more. R17
func FuzzTopicEdit(f *testing.F) {
	f.Add("", "b a", "")
	f.Add("a b c", "d b", "a z")
	f.Add("a", "", "a")
	f.Fuzz(func(t *testing.T, bound, bind, unbind string) {
		was := strings.Fields(bound)
		slices.Sort(was)
		was = slices.Compact(was)
		e := storage.TopicEdit{Bind: strings.Fields(bind), Unbind: strings.Fields(unbind)}
		if e.Check("t") != nil || len(was) > storage.MaxBindings {
			return
		}
		now, err := e.Edit("t", was)
		if err != nil {
			assert.ErrorIs(t, err, storage.ErrFull)
			assert.True(t, len(was)+len(e.Bind) > storage.MaxBindings)
			return
		}
		assert.True(t, slices.IsSorted(now) && len(slices.Compact(slices.Clone(now))) == len(now), now)
		for _, q := range slices.Concat(was, e.Bind, e.Unbind, now) {
			want := !slices.Contains(e.Unbind, q) && (slices.Contains(was, q) || slices.Contains(e.Bind, q))
			assert.Equal(t, slices.Contains(now, q), want, q)
		}
		again, err := e.Edit("t", now)
		assert.NoError(t, err)
		assert.True(t, slices.Equal(again, now), again, now)
	})
}
