// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/bidemq/bide/internal/redistest"
)

// Scripts that import from the Redis that the variable REDIS names, and that cli talks to, into a
// directory and into Redis.
func TestImportScripts(t *testing.T) {
	source := redistest.Start(t)
	cli := "redis-cli -s " + strings.TrimPrefix(source.URL(), "redis+unix://")
	for name, store := range map[string]func(*testscript.Env) string{
		"pebble": func(env *testscript.Env) string { return "pebble:" + filepath.Join(env.WorkDir, "store") },
		"redis":  func(env *testscript.Env) string { return source.URL() + "?namespace=" + filepath.Base(env.WorkDir) },
	} {
		t.Run(name, func(t *testing.T) {
			runScripts(t, "testdata/import/*.txtar", func(env *testscript.Env) string {
				env.Setenv("REDIS", source.URL())
				env.Setenv("CLI", cli)
				env.Setenv("P", name) // prefix of keys, since scripts run at once
				return store(env)
			})
		})
	}
}
