// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/bidemq/bide/internal/redistest"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"bide": main})
}

// The scripts are the documentation of the command line. Each runs on a directory and on Redis,
// with nothing changed but the store.
func TestScripts(t *testing.T) {
	t.Run("pebble", func(t *testing.T) {
		runScripts(t, "testdata/*.txtar", func(env *testscript.Env) string {
			return "pebble:" + filepath.Join(env.WorkDir, "store")
		})
	})
	t.Run("redis", func(t *testing.T) {
		server := redistest.Start(t)
		runScripts(t, "testdata/*.txtar", func(env *testscript.Env) string {
			return server.URL() + "?namespace=" + filepath.Base(env.WorkDir)
		})
	})
}

// Scripts about directories, and about what is no store at all.
func TestStoreScripts(t *testing.T) {
	runScripts(t, "testdata/store/*.txtar", func(*testscript.Env) string { return "" })
}

// Scripts that need a server of their own, named by the variable REDIS.
func TestRedisScripts(t *testing.T) {
	server := redistest.Start(t)
	runScripts(t, "testdata/redis/*.txtar", func(*testscript.Env) string { return server.URL() })
}

func runScripts(t *testing.T, pattern string, store func(*testscript.Env) string) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts match %s: %v", pattern, err)
	}
	testscript.Run(t, testscript.Params{
		Files:               files,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("GORACE", "atexit_sleep_ms=0") // else each bide takes a second to end
			if s := store(env); s != "" {
				env.Setenv("BIDE_STORE", s)
			}
			return nil
		},
		Cmds: maps.Clone(commands),
	})
}

// commands are what scripts can say besides testscript's own.
var commands = map[string]func(ts *testscript.TestScript, neg bool, args []string){
	"exits": exits,
}

// exits runs bide and checks its exit code: exits CODE ARG...
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE ARG...")
	}
	err := ts.Exec("sh", append([]string{"-c", `want=$1; shift; bide "$@"; got=$?; test $got = $want || { echo "exit $got, want $want" >&2; exit 1; }`, "sh"}, args...)...)
	if err != nil {
		ts.Fatalf("%v: %s", err, ts.ReadFile("stderr"))
	}
}
