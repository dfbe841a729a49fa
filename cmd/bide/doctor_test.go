// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/bidemq/bide/internal/redistest"
)

// Scripts about the health of two servers, of which GOOD has nothing to mend and BAD has.
func TestDoctorScripts(t *testing.T) {
	good := redistest.Start(t, redistest.AppendOnly("everysec"), redistest.Config("maxmemory", "200mb"))
	bad := redistest.Start(t, redistest.Config("maxmemory-policy", "allkeys-lru", "maxmemory", "200mb"))
	runScripts(t, "testdata/doctor/*.txtar", func(env *testscript.Env) string {
		env.Setenv("GOOD", good.URL())
		env.Setenv("BAD", bad.URL())
		return ""
	})
}
