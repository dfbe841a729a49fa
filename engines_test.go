// SPDX-License-Identifier: Apache-2.0

package bide_test

import (
	"testing"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/internal/redistest"
	"github.com/bidemq/bide/memstore"
	"github.com/bidemq/bide/pebblestore"
	"github.com/bidemq/bide/redisstore"
	"github.com/bidemq/bide/storage"
)

// onEveryEngine runs a test on real time with each engine, on a store of its own.
func onEveryEngine(t *testing.T, test func(t *testing.T, client *bide.Client)) {
	t.Helper()
	for name, open := range map[string]func(t *testing.T) storage.Engine{
		"memstore": func(*testing.T) storage.Engine { return memstore.New(memstore.Options{}) },
		"pebblestore": func(t *testing.T) storage.Engine {
			engine, err := pebblestore.Open(t.TempDir(), pebblestore.Options{})
			assert.NoError(t, err)
			return engine
		},
		"redisstore": func(t *testing.T) storage.Engine {
			engine, err := redisstore.OpenWith(t.Context(), redistest.Start(t).URL(), redisstore.Options{Logger: quiet()})
			assert.NoError(t, err)
			return engine
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			engine := open(t)
			client := bide.NewClient(engine, bide.ClientConfig{Logger: quiet()})
			test(t, client)
			assert.NoError(t, client.Close(t.Context()))
			assert.NoError(t, engine.Close())
		})
	}
}
