// SPDX-License-Identifier: Apache-2.0

package stage_test

import (
	"context"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/bidemq/bide/examples/internal/stage"
	"github.com/bidemq/bide/internal/assert"
)

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	for _, address := range []string{"mem:", filepath.Join(dir, "a"), "pebble:" + filepath.Join(dir, "b")} {
		engine, err := stage.Open(t.Context(), address)
		assert.NoError(t, err, address)
		assert.NoError(t, engine.Close())
	}
	_, err := stage.Open(t.Context(), "redis://localhost:no")
	assert.True(t, err != nil)
}

func TestLedger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l stage.Ledger
		waited := make(chan error, 1)
		go func() { waited <- l.Until(t.Context(), 2) }()
		synctest.Wait()
		assert.Equal(t, l.Note("a"), 1)
		assert.Equal(t, l.Note("a"), 2)
		synctest.Wait()
		assert.Equal(t, len(waited), 0)
		assert.Equal(t, l.Note("b"), 1)
		assert.NoError(t, <-waited)
		assert.Equal(t, []int{l.Times("a"), l.Times("b"), l.Times("c")}, []int{2, 1, 0})
		assert.True(t, l.Once(2) != nil, "a was done twice")

		var once stage.Ledger
		once.Note("a")
		assert.NoError(t, once.Once(1))
		assert.True(t, once.Once(2) != nil, "b is missing")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		assert.ErrorIs(t, once.Until(ctx, 2), context.Canceled)
	})
}
