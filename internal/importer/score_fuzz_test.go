// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/storage"
)

// A score is the instant that it counts to, within what its precision leaves open, or ErrInvalid; and
// a later score is never an earlier instant.
func FuzzScore(f *testing.F) {
	f.Add(1_700_000_000.5, 1_700_000_001.0, byte(0))
	f.Add(1_700_000_000_123.0, 1e12, byte(1))
	f.Add(1e15, 1e18, byte(2))
	f.Add(math.Inf(1), math.NaN(), byte(0))
	f.Add(-1.0, 4e9, byte(1))
	units := []Unit{Seconds, Milliseconds, Microseconds}
	per := map[Unit]float64{Seconds: 1e6, Milliseconds: 1e3, Microseconds: 1}
	f.Fuzz(func(t *testing.T, a, b float64, kind byte) {
		u := units[int(kind)%len(units)]
		at, err := u.instant(a)
		if err != nil {
			assert.ErrorIs(t, err, storage.ErrInvalid)
			assert.True(t, math.IsNaN(a) || math.Abs(a*per[u]) > 1e18, a)
			return
		}
		want := max(a, 0) * per[u]
		assert.True(t, math.Abs(float64(at.UnixMicro())-want) <= 1+want/1e15, a, at)
		if later, err := u.instant(b); err == nil && b >= a {
			assert.True(t, !later.Before(at), a, b)
		}
		switch guessed, err := guess(min(a, b), max(a, b)); {
		case err != nil:
			assert.ErrorIs(t, err, storage.ErrInvalid)
		default:
			for _, score := range []float64{a, b} {
				at, err := guessed.instant(score)
				assert.NoError(t, err)
				assert.True(t, at.Year() >= 1973 && at.Year() <= 5138, score, guessed, at)
			}
		}
	})
}

// Entries whose content differs have different digests, wherever one part ends and the next begins.
func FuzzPrint(f *testing.F) {
	f.Add(int64(1), []byte("body"), "name", "value", int64(1), []byte("bod"), "yname", "value")
	f.Add(int64(0), []byte{}, "", "", int64(0), []byte{0}, "", "")
	f.Add(int64(12), []byte("3"), "a", "b", int64(1), []byte("23"), "a", "b")
	f.Fuzz(func(t *testing.T, due1 int64, body1 []byte, name1, value1 string, due2 int64, body2 []byte, name2, value2 string) {
		same := due1 == due2 && string(body1) == string(body2) && name1 == name2 && value1 == value2
		one := printOf(due1, body1, map[string]string{name1: value1})
		assert.Equal(t, len(one), 15)
		assert.Equal(t, one == printOf(due2, body2, map[string]string{name2: value2}), same)
		assert.True(t, one != printOf(due1, body1, nil) && one != printOf(due1, body1, map[string]string{name1: value1}, ""))
		assert.Equal(t, idOf("zset", value1) == idOf("zset", value2), value1 == value2)
		assert.NoError(t, storage.CheckID(idOf("list", value1)+"-12345678901234567890"))
	})
}

// What an entry of asynq becomes is accepted by an engine, or refused here.
func FuzzTaskMessage(f *testing.F) {
	f.Add("id", "email", []byte("{}"), int64(25), int64(3), int64(0), "group", "name", "value")
	f.Add("", "", []byte{}, int64(-1), int64(math.MaxInt64), int64(math.MaxInt64), "", "", "")
	f.Add("a", "b", []byte{}, int64(math.MaxInt64), int64(math.MinInt64), int64(math.MinInt64), "\x00", "", "")
	f.Add("a", "b", []byte{}, int64(5), int64(0), int64(1)<<40, "g", HeaderType, "other")
	f.Fuzz(func(t *testing.T, id, kind string, payload []byte, retry, retried, deadline int64, group, name, value string) {
		due := time.UnixMilli(1_700_000_000_000)
		ask := task{kind: kind, payload: payload, retry: retry, retried: retried, deadline: deadline, group: group}
		if name != "" {
			ask.headers = map[string]string{name: value}
		}
		m, err := ask.message(id, due)
		if err != nil {
			assert.ErrorIs(t, err, bide.ErrExpired)
			assert.True(t, deadline <= time.Now().Unix()+1, deadline)
			return
		}
		assert.Equal(t, m.Headers[HeaderType], kind)
		assert.True(t, m.MaxAttempts >= 1 && m.MaxAttempts <= storage.MaxAttempts, m.MaxAttempts)
		assert.True(t, m.ExpireIn >= 0 && (m.ExpireIn == 0) == (deadline == 0), m.ExpireIn, deadline)
		if retried >= 0 && retry >= retried {
			assert.Equal(t, m.MaxAttempts, int(min(retry-retried, storage.MaxAttempts-1))+1)
		}
		e := Entry{Message: m}
		if err := e.check(); err != nil {
			assert.True(t, strings.Contains(err.Error(), storage.ErrInvalid.Error()) || strings.Contains(err.Error(), storage.ErrTooLarge.Error()), err)
			return
		}
		assert.True(t, m.ExpireIn <= storage.MaxDelay, m.ExpireIn)
	})
}
