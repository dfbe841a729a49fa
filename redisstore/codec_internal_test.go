// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"strings"
	"testing"
	"time"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/storage"
)

func TestHeadersComeBack(t *testing.T) {
	t.Parallel()
	for _, headers := range []map[string]string{
		nil, {"a": ""}, {"a": "b", "c": strings.Repeat("d", 300)}, {"ü": "\x00\x01"},
	} {
		encoded, size := encodeHeaders(headers)
		want := 0
		for name, value := range headers {
			want += len(name) + len(value)
		}
		assert.Equal(t, size, want)
		got, err := decodeHeaders(encoded)
		assert.NoError(t, err)
		assert.Equal(t, got, headers)
	}
}

// Damage is an error and not a panic.
func FuzzDecode(f *testing.F) {
	r := storage.Record{ID: "a", Key: "k", Headers: map[string]string{"h": "v"}, Body: []byte("body")}
	f.Add("\x00\x00\x00\x00\x00\x00\x01"+strings.Repeat("\x00", 12)+rest(&r), strings.Repeat("\x00", progressSize)+"why", int64(-1))
	f.Add("", "", int64(5))
	f.Fuzz(func(t *testing.T, blob, progress string, finished int64) {
		got, err := decode("a", []byte(blob), progress, finished, time.UnixMilli(0))
		if err != nil {
			assert.ErrorIs(t, err, storage.ErrFormat)
			return
		}
		assert.True(t, len(got.Body)+len(got.Key) <= len(blob))
	})
}
