// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"crypto/sha1" //nolint:gosec // what Redis names scripts by
	"embed"
	"encoding/hex"
	"fmt"
	"slices"
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
	source string   // its text, which is constant
	sum    string   // what Redis names it by
	lua    *rueidis.Lua
	plain  *script // the same for queues without keys, bounds and retention; nil if there is none
}

// newScript returns a script made of parts. Those between stars are what a plain queue does without;
// those between slashes are its alone, and most of its calls end there.
func newScript(name string, parts string, args, each int, repeat bool) *script {
	s := &script{name: name, args: args, each: each, repeat: repeat}
	var all, plain []string
	for part := range strings.FieldsSeq(parts) {
		bare := strings.Trim(part, "*/")
		if !strings.HasPrefix(part, "/") {
			all = append(all, bare)
		}
		if !strings.HasPrefix(part, "*") {
			plain = append(plain, bare)
		}
	}
	s.parts = append([]string{"state"}, all...)
	s.load()
	if strings.Contains(parts, "*") {
		p := *s
		p.parts = append([]string{"state"}, plain...)
		p.load()
		s.plain = &p
	}
	return s
}

// load puts a script together, once.
func (s *script) load() {
	s.source = s.text()
	sum := sha1.Sum([]byte(s.source)) //nolint:gosec // not for secrets
	s.sum = hex.EncodeToString(sum[:])
	s.lua = rueidis.NewLuaScript(s.source)
}

// text is constant: what varies between calls are keys and arguments.
func (s *script) text() string {
	var b strings.Builder
	for _, part := range append(slices.Clone(s.parts), s.name) {
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
	enqueueScript   = newScript("enqueue", "/enqueue_fast/ queue *settings* record grants moves *groups* *bounds* wake", 2, 2, true)
	claimScript     = newScript("claim", "/claim_fast/ queue *settings* record grants moves *groups* *bounds* wake enlist lease *turns*", 10, 0, false)
	settleScript    = newScript("settle", "/settle_fast/ queue *settings* record grants moves *groups* *bounds* wake", 1, 2, true)
	extendScript    = newScript("extend", "queue *settings* record grants moves *groups* *bounds* wake", 2, 2, true)
	watchScript     = newScript("watch", "queue *settings* record grants moves *groups* *bounds* wake enlist", 3, 0, true)
	statsScript     = newScript("stats", "queue settings record grants moves groups bounds wake", 1, 0, true)
	keysScript      = newScript("keys", "queue settings record grants moves groups bounds wake", 5, 0, true)
	toldScript      = newScript("told", "queue settings record grants moves groups bounds wake", 1, 1, true)
	getScript       = newScript("get", "queue settings record grants moves groups bounds wake byid", 2, 0, true)
	cancelScript    = newScript("cancel", "cancel_fast queue settings record grants moves groups bounds wake byid", 3, 0, false)
	editScript      = newScript("edit", "queue settings record grants moves groups bounds wake byid", 7, 0, false)
	configureScript = newScript("configure", "queue settings record grants moves groups bounds wake", 8, 0, true)
	listScript      = newScript("list", "queue settings record grants moves groups bounds wake byid select", 10, 0, true)
	purgeScript     = newScript("purge", "queue settings record grants moves groups bounds wake byid select", 10, 0, false)
	redriveScript   = newScript("redrive", "queue settings record grants moves groups bounds wake byid select", 10, 0, false)
	repairScript    = newScript("repair", "queue settings record grants moves groups bounds wake", 5, 0, false)

	shardScanScript   = newScript("shard_scan", "", 4, 0, true)
	shardFreeScript   = newScript("shard_free", "", 2, 0, true)
	shardAdoptScript  = newScript("shard_adopt", "queue settings record grants moves groups bounds wake", 3, 0, true)
	shardForgetScript = newScript("shard_forget", "queue settings record grants moves groups bounds wake", 2, 0, true)
)

// ScriptError is an answer of Redis to a script that none of the categories of package storage fits.
type ScriptError struct {
	Script string // name of the script, as in lua/
	Err    error  // what Redis answered, nil if that has not the form of the script's answers
}

// Error names the script and the answer.
func (e *ScriptError) Error() string {
	if e.Err == nil {
		return "script " + e.Script + ": not an answer of its form"
	}
	return "script " + e.Script + ": " + e.Err.Error()
}

// Unwrap returns the answer.
func (e *ScriptError) Unwrap() error { return e.Err }
