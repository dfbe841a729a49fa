// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/storage"
)

func TestMillisRoundsUp(t *testing.T) {
	for in, want := range map[time.Duration]time.Duration{
		0: 0, 1: time.Millisecond, time.Millisecond: time.Millisecond, time.Millisecond + 1: 2 * time.Millisecond,
		999 * time.Microsecond: time.Millisecond, time.Hour: time.Hour, -1: -1,
	} {
		assert.Equal(t, storage.Millis(in), want, in)
	}
}

func TestDueMilliRoundsUp(t *testing.T) {
	for in, want := range map[time.Time]int64{
		time.Unix(0, 0):           0,
		time.Unix(0, 1):           1,
		time.Unix(5, 999_999_999): 6000,
		time.Unix(5, 1_000_000):   5001,
		time.Unix(-100, 0):        0,
		{}:                        0,
		time.Date(1950, 1, 1, 0, 0, 0, 1, time.UTC): 0,
	} {
		assert.Equal(t, storage.DueMilli(in), want, in)
	}
}

func TestCheckQueue(t *testing.T) {
	for _, good := range []string{"a", "A9", "order.timeout", "a-b_c:d.e", strings.Repeat("x", storage.MaxName)} {
		assert.NoError(t, storage.CheckQueue(good))
	}
	for _, bad := range []string{"", ".a", "-a", ":a", "_a", "a b", "a/b", "{a}", "a\x00", "ü", "a*", strings.Repeat("x", storage.MaxName+1)} {
		assert.ErrorIs(t, storage.CheckQueue(bad), storage.ErrInvalid, bad)
	}
}

func TestCheckNow(t *testing.T) {
	for _, good := range []time.Time{{}, time.UnixMilli(0), time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)} {
		assert.NoError(t, storage.CheckNow(good))
	}
	for _, bad := range []time.Time{time.UnixMilli(-1), time.Date(2100, 1, 1, 0, 0, 0, 1, time.UTC), time.Date(292277026596, 1, 1, 0, 0, 0, 0, time.UTC)} {
		assert.ErrorIs(t, storage.CheckNow(bad), storage.ErrInvalid, bad)
	}
}

func TestCutReason(t *testing.T) {
	assert.Equal(t, storage.CutReason("short"), "short")
	long := storage.CutReason("x" + strings.Repeat("\u2603", storage.MaxReason))
	assert.True(t, len(long) <= storage.MaxReason && len(long) > storage.MaxReason-utf8.UTFMax, len(long))
	assert.True(t, utf8.ValidString(long))
	assert.True(t, len(storage.CutReason(strings.Repeat("\x80", 2*storage.MaxReason))) <= storage.MaxReason)
}

func TestNames(t *testing.T) {
	for _, s := range []storage.State{storage.Delayed, storage.Ready, storage.Leased, storage.Dead, storage.Done} {
		parsed, err := storage.ParseState(s.String())
		assert.NoError(t, err)
		assert.Equal(t, parsed, s)
	}
	for _, bad := range []string{"", "Ready", "unknown(9)"} {
		_, err := storage.ParseState(bad)
		assert.ErrorIs(t, err, storage.ErrInvalid, bad)
	}
	assert.Equal(t, storage.State(9).String(), "unknown(9)")
	assert.Equal(t, storage.Verdict(0).String(), "unknown(0)")
	assert.Equal(t, storage.Reran.String(), "rerun")
	assert.Equal(t, storage.Rerun.String(), "rerun")
}

func TestRecordAt(t *testing.T) {
	r := storage.Record{Due: time.Unix(1, 0), Lease: storage.Lease{Until: time.Unix(2, 0)}, Finished: time.Unix(3, 0), FirstDue: time.Unix(4, 0)}
	for state, want := range map[storage.State]int64{storage.Delayed: 1, storage.Ready: 1, storage.Leased: 2, storage.Dead: 3, storage.Done: 3} {
		r.State = state
		assert.Equal(t, r.At().Unix(), want, state)
	}
	assert.True(t, r.Expires().IsZero())
	r.ExpireIn = time.Microsecond
	assert.Equal(t, r.Expires(), time.Unix(4, 1_000_000))
}
