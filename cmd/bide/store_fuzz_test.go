// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/url"
	"strings"
	"testing"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/storage"
)

// The URL of a directory names one, with what it says after the question mark and nothing else.
func FuzzPebbleURL(f *testing.F) {
	for _, s := range []string{"dir", "", "///var/lib/bide", "//host/dir", "dir?relaxed=true", "dir?relaxed=yes", "dir?relax=true", "d?relaxed=true&relaxed=false", "a?b?c", "?relaxed=true", "d?%zz", "d?;", "d?relaxed=false&relaxed=true"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, rest string) {
		dir, relaxed, err := parsePebble(rest)
		if err != nil {
			assert.ErrorIs(t, err, storage.ErrInvalid)
			return
		}
		assert.True(t, dir != "" && !strings.HasPrefix(dir, "//"), dir)
		assert.True(t, strings.HasPrefix(strings.TrimPrefix(rest, "//"), dir), dir)
		_, query, _ := strings.Cut(rest, "?")
		values, err := url.ParseQuery(query)
		assert.NoError(t, err)
		assert.True(t, len(values) == 0 || len(values) == 1 && len(values["relaxed"]) == 1, query)
		assert.Equal(t, relaxed, values.Get("relaxed") == "true", query)
	})
}
