// SPDX-License-Identifier: Apache-2.0

package storagetest

import (
	"math/rand/v2"
	"testing"
)

// Fuzz compares an engine with package memstore over the programs that bytes stand for. What differs
// is shortened and printed as a test.
func Fuzz(f *testing.F, open Open) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 4 {
		seed := make([]byte, 400)
		for i := range seed {
			seed[i] = byte(random.Uint32())
		}
		f.Add(seed)
	}
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		p := Decode(data)
		if diff := differs(t.Context(), open(t), p, 5, nil); diff != "" {
			p = shrink(p, func(p Program) bool { return differs(t.Context(), open(t), p, 1, nil) != "" })
			t.Fatalf("%s\n\nstoragetest.Replay(t, open, %s)", differs(t.Context(), open(t), p, 1, nil), p)
		}
	})
}

// maxSteps bounds the programs that bytes stand for.
const maxSteps = 2 * steps

// Decode returns the program that bytes stand for: the one of Generate, with the bytes in place of
// chance. It ends where they do.
func Decode(data []byte) Program {
	source := &choices{rest: data, after: rand.NewPCG(0, 0)}
	g := generator{Rand: rand.New(source)}
	g.plain = g.IntN(4) == 0
	g.keyed = 1 + g.IntN(3)
	var p Program
	if !g.plain && g.IntN(3) == 0 {
		p = append(p, Op{Do: "configure", Set: "Ordered", N: 1})
	}
	if !g.plain && g.IntN(3) == 0 {
		p = append(p, Op{Do: "configure", Set: "RetainCount", N: 20})
	}
	for len(source.rest) > 0 && len(p) < maxSteps {
		p = append(p, g.op())
	}
	return p
}

// choices are bytes as a source of chance: each decides one choice among at most 256.
type choices struct {
	rest  []byte
	after *rand.PCG // decides what is left of the last step
}

// Uint64 makes the high half of the number proportional to a byte, and its low bits the byte itself,
// so that package rand/v2 chooses by it in either of its ways.
func (c *choices) Uint64() uint64 {
	if len(c.rest) == 0 {
		return c.after.Uint64()
	}
	b := uint64(c.rest[0])
	c.rest = c.rest[1:]
	return b<<56 | 1<<55 | b
}
