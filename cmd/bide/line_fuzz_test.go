// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/storage"
)

// A line is a message with what it says, or ErrInvalid; it is never a message with less.
func FuzzLine(f *testing.F) {
	for _, s := range []string{
		`{}`, `{"body":{"a":1}}`, `{"body":null}`, `{"text":"x","id":"a","in":"90s","key":"k","priority":9}`, `{"base64":"AAE=","due":"2026-01-31T09:00:00Z"}`,
		`{"base64":"?"}`, `{"text":"a","base64":""}`, `{"id":""}`, `{"in":"soon"}`, `{"inn":"1h"}`, `{"IN":"1h"}`, `{"on_live":"rerun"}`, `{"on_live":"x"}`,
		`{"expire_in":"1h","dedup_for":"-1s","max_attempts":3,"headers":{"a":"b"}}`, `{"headers":{"a":1}}`, `{} {}`, `{}]`, `[]`, `null`, ``, `{"id":"\ud800"}`,
		`{"in":"1h","in":"2h"}`, `{"priority":1e3}`, `{"due":"31.1.2026"}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := parseLine(data)
		if err != nil {
			assert.ErrorIs(t, err, storage.ErrInvalid)
			return
		}
		assert.True(t, json.Valid(data), "taken as JSON")
		said := map[string]json.RawMessage{}
		assert.NoError(t, json.Unmarshal(data, &said))
		for name := range said {
			assert.True(t, strings.Contains(" body text base64 id in due key priority headers expire_in max_attempts dedup_for on_live ", " "+strings.ToLower(name)+" "), name)
		}
		again := map[string]any{"base64": m.Body, "key": m.Key, "priority": m.Priority, "headers": m.Headers, "max_attempts": m.MaxAttempts, "on_live": m.OnLive.String()}
		if m.Body == nil {
			delete(again, "base64")
		}
		if m.ID != "" {
			again["id"] = m.ID
		}
		if !m.Due.IsZero() {
			again["due"] = m.Due
		}
		for name, d := range map[string]time.Duration{"in": m.Delay, "expire_in": m.ExpireIn, "dedup_for": m.DedupFor} {
			again[name] = d.String()
		}
		line, err := json.Marshal(again)
		assert.NoError(t, err)
		same, err := parseLine(line)
		assert.NoError(t, err, string(line))
		assert.True(t, same.Due.Equal(m.Due), string(line))
		same.Due = m.Due
		assert.Equal(t, same, m, string(line))
	})
}

// Lines end where they end: nothing is lost between them, whatever the size of the buffer.
func FuzzReadLine(f *testing.F) {
	f.Add([]byte("a\nb\n\nc"), 16)
	f.Add([]byte(strings.Repeat("x", 100)+"\r\ny"), 17)
	f.Add([]byte{}, 0)
	f.Fuzz(func(t *testing.T, data []byte, size int) {
		in := bufio.NewReaderSize(bytes.NewReader(data), min(max(size, 16), 1<<12))
		var read []byte
		for {
			line, long, err := readLine(in)
			assert.True(t, !long && bytes.Count(line, []byte("\n")) <= 1, string(line))
			if i := bytes.IndexByte(line, '\n'); i >= 0 {
				assert.Equal(t, i, len(line)-1)
			}
			read = append(read, line...)
			if errors.Is(err, io.EOF) {
				break
			}
			assert.NoError(t, err)
		}
		assert.True(t, bytes.Equal(read, data), string(read))
	})
}

// What a listing shows of a body is what enqueue --lines takes.
func FuzzPayload(f *testing.F) {
	for _, s := range []string{"", "text", `{"a": 1}`, "\xff\x00", `"a string"`, " {} ", "null", "1 2", "\u2028", `{"a":"<&>"}`, "123456789012345678901234567890"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		shown, err := json.Marshal(showPayload(body))
		assert.NoError(t, err)
		m, err := parseLine(shown)
		assert.NoError(t, err, string(shown))
		if bytes.Equal(m.Body, body) {
			return
		}
		// A body that is JSON is shown as such, and means the same.
		var got, want any
		assert.NoError(t, json.Unmarshal(m.Body, &got), string(shown))
		assert.NoError(t, json.Unmarshal(body, &want), string(shown))
		assert.Equal(t, got, want)
	})
}

// Arguments are what they are documented to be, or ErrInvalid.
func FuzzArguments(f *testing.F) {
	for _, s := range []string{"0-99", "5", "9-1", "-1", "1-", "a=b", "=b", "a", "a=b=c", "2026-01-31 09:00", "2026-01-31T09:00:00.5+02:00", "2026-02-30", "9999-12-31", "2026-03-29 02:30", "99999999999-1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if r, err := parseRanks(s); err != nil {
			assert.ErrorIs(t, err, storage.ErrInvalid)
		} else {
			assert.True(t, r.given && r.first >= 0 && r.first <= r.last && r.last < 1<<31, r)
		}
		if h, err := parseHeaders([]string{s}); err != nil {
			assert.ErrorIs(t, err, storage.ErrInvalid)
		} else {
			for name, value := range h {
				assert.Equal(t, name+"="+value, s)
			}
			_, err := parseHeaders([]string{s, s})
			assert.ErrorIs(t, err, storage.ErrInvalid)
		}
		at, err := parseInstant(s)
		if err != nil {
			assert.ErrorIs(t, err, storage.ErrInvalid)
			return
		}
		same, err := parseInstant(at.Format(time.RFC3339Nano))
		assert.NoError(t, err, at)
		assert.True(t, same.Equal(at), same, at)
	})
}
