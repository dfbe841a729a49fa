// SPDX-License-Identifier: Apache-2.0

package storagetest

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/bidemq/bide/internal/assert"
)

// Bytes reach every step that chance does, and mean the same each time.
func TestBytesReachEveryStep(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	steps := func(next func() Program) map[string]bool {
		seen := map[string]bool{}
		for range 400 {
			for _, op := range next() {
				seen[op.Do+" "+op.Set] = true
			}
		}
		return seen
	}
	chance := steps(func() Program { return Generate(random.Uint64(), 60) })
	bytes := steps(func() Program {
		data := make([]byte, 600)
		for i := range data {
			data[i] = byte(random.Uint32())
		}
		p := Decode(data)
		assert.Equal(t, Decode(data).String(), p.String())
		assert.True(t, len(p) > 20, len(p))
		return p
	})
	for step := range chance {
		assert.True(t, bytes[step], "no bytes stand for", step)
	}
	assert.Equal(t, len(Decode(nil)), 0)
	assert.True(t, len(Decode([]byte(strings.Repeat("\x00", 1<<16)))) <= maxSteps)
}
