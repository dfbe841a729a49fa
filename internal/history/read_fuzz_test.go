// SPDX-License-Identifier: Apache-2.0

package history_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/internal/history"
)

// A history is read wherever the process was killed that wrote it: whole lines count, and a call with
// its return is one.
func FuzzRead(f *testing.F) {
	call := `{"process":"a","number":1,"op":"claim","queue":"q","began":"2026-01-01T00:00:00Z"`
	f.Add([]byte(call+"}\n"), []byte(call+`,"fate":"ok","items":[{"id":"x","token":3}]}`+"\n"))
	f.Add([]byte(call+"}\n"+call), []byte{})
	f.Add([]byte("{}\n{}\n"), []byte("null\n"))
	f.Add([]byte("\n"), []byte(`{"number":"1"}`+"\n"))
	f.Fuzz(func(t *testing.T, one, two []byte) {
		calls, err := history.Read(bytes.NewReader(one), bytes.NewReader(two))
		bad := false
		type id struct {
			Process string
			Number  int64
		}
		want := map[id]bool{}
		for _, data := range [][]byte{one, two} {
			whole := string(data[:bytes.LastIndexByte(data, '\n')+1])
			for line := range strings.Lines(whole) {
				var c history.Call
				bad = bad || json.Unmarshal([]byte(line), &c) != nil
				want[id{c.Process, c.Number}] = true
			}
		}
		assert.Equal(t, err != nil, bad)
		if err != nil {
			return
		}
		assert.Equal(t, len(calls), len(want))
		for i, c := range calls {
			assert.True(t, want[id{c.Process, c.Number}], c)
			assert.True(t, i == 0 || !c.Began.Before(calls[i-1].Began), c)
		}
		// A last line that was cut off says nothing.
		cut, err := history.Read(bytes.NewReader(one), bytes.NewReader(append(bytes.Clone(two[:bytes.LastIndexByte(two, '\n')+1]), `{"cut":`...)))
		assert.NoError(t, err)
		assert.Equal(t, cut, calls)
	})
}
