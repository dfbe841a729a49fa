// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"math"
	"testing"
	"time"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/storage"
)

func TestInstant(t *testing.T) {
	for _, c := range []struct {
		unit  Unit
		score float64
		want  int64 // milliseconds, as an engine rounds
	}{
		{Seconds, 1_700_000_000, 1_700_000_000_000},
		{Seconds, 1_700_000_000.123, 1_700_000_000_123},
		{Seconds, 1_700_000_000.1234567, 1_700_000_000_124},
		{Milliseconds, 1_700_000_000_123, 1_700_000_000_123},
		{Milliseconds, 1_700_000_000_123.5, 1_700_000_000_124},
		{Microseconds, 1_700_000_000_123_456, 1_700_000_000_124},
		{Seconds, -5, 0},
		{Seconds, 0, 0},
	} {
		due, err := c.unit.instant(c.score)
		assert.NoError(t, err, c.score)
		assert.Equal(t, storage.DueMilli(due), c.want, c.score)
	}
	for _, bad := range []float64{math.Inf(1), math.Inf(-1), math.NaN(), 1e19} {
		_, err := Seconds.instant(bad)
		assert.ErrorIs(t, err, storage.ErrInvalid, bad)
	}
}

func TestGuess(t *testing.T) {
	now := float64(time.Now().Unix())
	for _, c := range []struct {
		least, greatest float64
		want            Unit
	}{
		{now, now + 1, Seconds},
		{now * 1000, now*1000 + 5, Milliseconds},
		{now, now * 1000, ""},
		{now * 1e6, now * 1e6, ""},
		{0, now, ""},
		{1, 5, ""},
		{now, math.Inf(1), ""},
	} {
		got, err := guess(c.least, c.greatest)
		assert.Equal(t, got, c.want)
		assert.Equal(t, err != nil, c.want == "")
	}
}

func TestTag(t *testing.T) {
	for k, want := range map[string]string{"a": "a", "a{b}c": "b", "{}a": "{}a", "a{b": "a{b", "{b}{c}": "b", "x{{y}}": "{y"} {
		assert.Equal(t, tag(k), want)
	}
}

func FuzzDecodeTask(f *testing.F) {
	f.Add([]byte("\x0a\x05email\x12\x02{}\x28\x19\x7a\x06\x0a\x01a\x12\x01b"))
	f.Fuzz(func(t *testing.T, data []byte) {
		task, err := decodeTask(data)
		if err != nil {
			assert.ErrorIs(t, err, storage.ErrFormat)
			return
		}
		if m, err := task.message("id", time.Time{}); err == nil {
			assert.Equal(t, m.Headers[HeaderType], task.kind)
		}
	})
}
