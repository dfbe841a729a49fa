// SPDX-License-Identifier: Apache-2.0

package bide_test

import (
	"bytes"
	"testing"
	"unicode/utf8"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/internal/assert"
)

// fields is a payload with fields of several kinds.
type fields struct {
	Name  string
	Count int64
	Rate  float64
	Tags  []string
	Next  *fields
	Raw   []byte
}

// Any body decodes or is ErrDecode, also where its codec panics, and what decodes is encoded such that
// it decodes to the same.
func FuzzCodec(f *testing.F) {
	for _, s := range []string{
		"", "null", "{}", `{"Name":"x","Count":1,"Rate":1.5,"Tags":["a"],"Next":{"Raw":"AAE="}}`, `{"Count":1.5}`, `{"name":"y"}`,
		`{"Name":"\ud800"}`, `{"Count":9223372036854775808}`, "7", `"x"`, "[", `{"Next":{"Next":{}}}`, "\xff", `{"Rate":1e400}`,
	} {
		f.Add([]byte(s), int64(len(s)))
	}
	typed, raw, touchies := bide.NewQueue[fields]("typed"), bide.NewQueue[[]byte]("raw"), bide.NewQueue[touchy]("touchy")
	f.Fuzz(func(t *testing.T, body []byte, n int64) {
		if v, err := typed.Decode(body); err != nil {
			assert.ErrorIs(t, err, bide.ErrDecode)
		} else {
			m, err := typed.Message(v)
			assert.NoError(t, err)
			again, err := typed.Decode(m.Body)
			assert.NoError(t, err)
			assert.Equal(t, again, v)
		}
		if _, err := touchies.Decode(body); err != nil {
			assert.ErrorIs(t, err, bide.ErrDecode)
		}
		m, err := raw.Message(body)
		assert.NoError(t, err)
		same, err := raw.Decode(m.Body)
		assert.NoError(t, err)
		assert.True(t, bytes.Equal(same, body), string(body))

		v := fields{Name: string(body), Count: n, Raw: body, Next: &fields{Tags: []string{string(body)}}}
		if m, err = typed.Message(v); err != nil {
			assert.ErrorIs(t, err, bide.ErrInvalid)
			return
		}
		got, err := typed.Decode(m.Body)
		assert.NoError(t, err)
		assert.True(t, got.Count == n && bytes.Equal(got.Raw, body), got)
		assert.True(t, !utf8.Valid(body) || got.Name == string(body) && got.Next.Tags[0] == string(body), got)
	})
}
