// SPDX-License-Identifier: Apache-2.0

package storagetest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/memstore"
	"github.com/bidemq/bide/storage"
)

// broken is an engine with one mistake.
type broken struct {
	storage.Engine
	mistake string
}

func (b broken) Claim(ctx context.Context, now time.Time, c storage.Claim) (storage.Claimed, error) {
	if b.mistake == "early" {
		now = now.Add(time.Millisecond)
	}
	claimed, err := b.Engine.Claim(ctx, now, c)
	switch b.mistake {
	case "order":
		slices.Reverse(claimed.Records)
	case "attempts":
		for i := range claimed.Records {
			claimed.Records[i].Attempts = max(1, claimed.Records[i].Attempts-1)
		}
	}
	return claimed, err
}

func (b broken) Settle(ctx context.Context, now time.Time, ss []storage.Settlement) ([]storage.Receipt, error) {
	if b.mistake == "reasons" {
		ss = slices.Clone(ss)
		for i := range ss {
			ss[i].Reason = ""
		}
	}
	lost, err := b.Engine.Settle(ctx, now, ss)
	if b.mistake == "lost" {
		lost = nil
	}
	return lost, err
}

func (b broken) Enqueue(ctx context.Context, now time.Time, queue string, recs []storage.Record) ([]storage.EnqueueResult, error) {
	if b.mistake == "replace" {
		recs = slices.Clone(recs)
		for i := range recs {
			recs[i].OnLive = storage.Keep
		}
	}
	return b.Engine.Enqueue(ctx, now, queue, recs)
}

func (b broken) Cancel(ctx context.Context, now time.Time, queue, id string, running bool) error {
	return b.Engine.Cancel(ctx, now, queue, id, running || b.mistake == "cancel")
}

// A suite that cannot fail is worth nothing: each mistake is found and told in a few steps.
func TestProgramsFindMistakes(t *testing.T) {
	for _, mistake := range []string{"early", "order", "attempts", "reasons", "lost", "replace", "cancel"} {
		t.Run(mistake, func(t *testing.T) {
			t.Parallel()
			engine := broken{memstore.New(memstore.Options{}), mistake}
			fails := func(p Program) bool { return differs(t.Context(), engine, p, 1, nil) != "" }
			for seed := range uint64(500) {
				p := Generate(seed, steps)
				if !fails(p) {
					continue
				}
				short := shrink(p, fails)
				assert.True(t, len(short) <= 8, "not shortened enough:", short)
				t.Logf("seed %d: %s", seed, short)
				return
			}
			t.Fatal("500 programs did not find it")
		})
	}
}

// A program is the same for a seed, and prints as source.
func TestProgram(t *testing.T) {
	assert.Equal(t, Generate(7, 50), Generate(7, 50))
	p := Program{
		{Do: "enqueue", IDs: []string{"a", "b"}, Delay: 20 * time.Millisecond, OnLive: storage.Replace},
		{Do: "list", After: time.Second, State: storage.Dead, N: 3, Desc: true},
	}
	assert.Equal(t, p.String(), `storagetest.Program{
	{Do: "enqueue", IDs: []string{"a", "b"}, Delay: 20 * time.Millisecond, OnLive: storage.Replace},
	{Do: "list", After: 1000 * time.Millisecond, N: 3, State: storage.Dead, Desc: true},
}`)
}
