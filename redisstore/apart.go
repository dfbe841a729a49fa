// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"fmt"
	"strings"

	"github.com/redis/rueidis"
)

// The scripts about what lies apart from the queues: the locks of a namespace in one slot, its topics
// in another.
var (
	lockAcquireScript = newApart("lock_acquire", "lock", 7, 0, true)
	lockRenewScript   = newApart("lock_renew", "lock", 5, 0, true)
	lockReleaseScript = newApart("lock_release", "lock", 4, 0, false) // a second would report as lost what the first gave up
	lockLeaveScript   = newApart("lock_leave", "lock", 4, 0, true)
	topicScript       = newApart("topic", "", 2, 2, true)
	topicsScript      = newApart("topics", "", 2, 0, true)
)

// newApart makes a script that knows nothing of queues.
func newApart(name, prelude string, args, each int, repeat bool) *script {
	s := &script{name: name, parts: strings.Fields(prelude), args: args, each: each, repeat: repeat}
	var b strings.Builder
	for _, part := range append(s.parts, name) {
		b.WriteString(source(part))
	}
	s.lua = rueidis.NewLuaScript(b.String())
	return s
}

// source is the text of a file of lua/ without the comments that begin lines.
func source(part string) string {
	text, err := sources.ReadFile("lua/" + part + ".lua")
	if err != nil {
		return fmt.Sprintf("return redis.error_reply('%s')", err) // not in a build that passes its tests
	}
	var b strings.Builder
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "--") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// lockStructures are the keys of the locks, in the order in which lock.lua names them.
var lockStructures = [...]string{"state", "held", "ends", "waiting", "patience"}

// lockKeys returns the keys of all locks of a namespace. No queue has their hash tag, whatever its
// name: that of a queue ends in its part.
func lockKeys(namespace string) []string {
	keys := make([]string, len(lockStructures))
	for i, s := range lockStructures {
		keys[i] = "bide:{" + namespace + "/locks}:" + s
	}
	return keys
}

// topicKeys returns the key of all bindings of a namespace.
func topicKeys(namespace string) []string {
	return []string{"bide:{" + namespace + "/topics}:bindings"}
}

// runApart runs a script on keys that belong to no queue. The name is told in errors.
func (s *Store) runApart(ctx context.Context, sc *script, keys []string, name string, args ...string) (rueidis.RedisMessage, error) {
	var none rueidis.RedisMessage
	if err := s.open(ctx); err != nil {
		return none, err
	}
	if !sc.fits(len(args)) {
		return none, fmt.Errorf("redisstore: %q: %w", name, &ScriptError{sc.name, fmt.Errorf("%d arguments", len(args))})
	}
	ctx, cancel := s.within(ctx)
	defer cancel()
	m, err := again(ctx, sc.repeat, func() (rueidis.RedisMessage, error) {
		return sc.lua.Exec(ctx, s.client, keys, args).ToMessage()
	})
	return m, s.wrap(ctx, err, sc.name, name)
}
