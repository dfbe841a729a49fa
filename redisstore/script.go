// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"embed"
	"fmt"
	"strings"

	"github.com/redis/rueidis"
)

//go:embed lua/*.lua
var sources embed.FS

// script is a script and how it is called.
type script struct {
	name   string
	parts  []string // of lua/, before its own text
	args   int      // number of arguments that every call has
	each   int      // arguments that follow for each record
	repeat bool     // may be sent again when nobody knows whether it ran
	lua    *rueidis.Lua
}

func newScript(name string, parts string, args, each int, repeat bool) *script {
	s := &script{name: name, parts: strings.Fields(parts), args: args, each: each, repeat: repeat}
	s.lua = rueidis.NewLuaScript(s.text())
	return s
}

// text is constant: what varies between calls are keys and arguments.
func (s *script) text() string {
	var b strings.Builder
	for _, part := range append(append([]string{"queue"}, s.parts...), s.name) {
		source, err := sources.ReadFile("lua/" + part + ".lua")
		if err != nil {
			return fmt.Sprintf("return redis.error_reply('%s')", err) // not in a build that passes its tests
		}
		for line := range strings.Lines(string(source)) {
			if !strings.HasPrefix(line, "--") {
				b.WriteString(line)
			}
		}
	}
	return b.String()
}

// fits reports whether a call has the number of arguments that the script's header names.
func (s *script) fits(args int) bool {
	return args == s.args || s.each > 0 && args > s.args && (args-s.args)%s.each == 0
}

// scripts are all that this package runs.
var (
	enqueueScript   = newScript("enqueue", "record moves wake", 1, 3, true)
	claimScript     = newScript("claim", "record moves wake", 7, 0, false)
	settleScript    = newScript("settle", "record moves wake", 1, 2, true)
	extendScript    = newScript("extend", "record moves wake", 2, 2, true)
	watchScript     = newScript("watch", "record moves wake", 3, 0, true)
	statsScript     = newScript("stats", "record moves wake", 1, 0, true)
	getScript       = newScript("get", "record moves wake byid", 2, 0, true)
	cancelScript    = newScript("cancel", "record moves wake byid", 3, 0, false)
	editScript      = newScript("edit", "record moves wake byid", 7, 0, false)
	configureScript = newScript("configure", "record moves wake", 4, 0, true)
	listScript      = newScript("list", "record moves wake byid select", 10, 0, true)
	purgeScript     = newScript("purge", "record moves wake byid select", 10, 0, false)
	redriveScript   = newScript("redrive", "record moves wake byid select", 10, 0, false)
	repairScript    = newScript("repair", "record moves wake", 5, 0, false)
)

// ScriptError is an answer of Redis to a script that none of the categories of package storage fits.
type ScriptError struct {
	Script string // name of the script, as in lua/
	Err    error  // what Redis answered
}

// Error names the script and the answer.
func (e *ScriptError) Error() string { return "script " + e.Script + ": " + e.Err.Error() }

// Unwrap returns the answer.
func (e *ScriptError) Unwrap() error { return e.Err }
