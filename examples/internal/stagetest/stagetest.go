// SPDX-License-Identifier: Apache-2.0

// Package stagetest runs the examples in tests, on every engine.
package stagetest

import (
	"bytes"
	"context"
	"io"
	"path/filepath"
	"testing"
	"time"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/examples/internal/stage"
	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/internal/redistest"
)

// patience bounds an example that does not come to its end.
const patience = time.Minute

// OnEveryEngine runs an example in memory, on a directory and on Redis, on stores of their own. It
// fails if the example does, and hands what it printed to check.
func OnEveryEngine(
	t *testing.T,
	example func(ctx context.Context, out io.Writer, client *bide.Client) error,
	check func(t *testing.T, client *bide.Client, printed string),
) {
	for name, address := range map[string]func(t *testing.T) string{
		"memstore":    func(*testing.T) string { return "mem:" },
		"pebblestore": func(t *testing.T) string { return filepath.Join(t.TempDir(), "store") },
		"redisstore":  func(t *testing.T) string { return redistest.Start(t).URL() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			engine, err := stage.Open(ctx, address(t))
			assert.NoError(t, err)
			err = stage.With(ctx, engine, func(client *bide.Client) error {
				var out bytes.Buffer
				err := example(ctx, &out, client)
				assert.NoError(t, err, out.String())
				check(t, client, out.String())
				return nil
			})
			assert.NoError(t, err)
		})
	}
}
