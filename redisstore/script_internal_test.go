// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"log/slog"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/internal/redisconn"
	"github.com/bidemq/bide/internal/redistest"
	"github.com/bidemq/bide/storage"
	"github.com/bidemq/bide/storage/storagetest"
)

func allScripts() []*script {
	return []*script{
		enqueueScript, claimScript, settleScript, extendScript, watchScript, statsScript, getScript, cancelScript,
		editScript, configureScript, listScript, purgeScript, redriveScript, repairScript, keysScript, toldScript,
		shardScanScript, shardFreeScript, shardAdoptScript, shardForgetScript,
	}
}

// header is what the comment at the top of a script promises.
type header struct {
	keys, args, each int
	returns          bool
}

var position = regexp.MustCompile(`^--( KEYS | ARGV |      ) +(?:(\d+-)?(\d+)(\.\.\.)?) +`)

func parseHeader(t *testing.T, source string) header {
	t.Helper()
	var h header
	block, column := "", 0
	for line := range strings.Lines(source) {
		line = strings.TrimRight(line, "\n")
		if !strings.HasPrefix(line, "--") {
			break
		}
		h.returns = h.returns || strings.HasPrefix(line, "-- Returns ")
		m := position.FindStringSubmatch(line)
		if m == nil {
			if column > 0 && len(line) > column && strings.Trim(line[2:column], " ") == "" && line[column] != ' ' {
				h.each++
			} else if !strings.HasPrefix(line, "--    ") {
				block = ""
			}
			continue
		}
		if name := strings.TrimSpace(m[1]); name != "" {
			block = name
		}
		n, err := strconv.Atoi(m[3])
		assert.NoError(t, err)
		switch {
		case block == "KEYS":
			h.keys = n
		case m[4] != "":
			h.each, column = 1, len(m[0])
		default:
			h.args = n
		}
	}
	return h
}

func TestScriptHeadersSayWhatIsPassed(t *testing.T) {
	t.Parallel()
	named := map[string]bool{}
	for _, s := range allScripts() {
		source, err := sources.ReadFile("lua/" + s.name + ".lua")
		assert.NoError(t, err)
		want := header{keys: len(structures), args: s.args, each: s.each, returns: true}
		assert.Equal(t, parseHeader(t, string(source)) == want, true, s.name, parseHeader(t, string(source)), want)
		assert.True(t, strings.HasPrefix(string(source), "-- "+s.name+" "), s.name)
		named[s.name] = true
		for _, p := range s.parts {
			named[p] = true
		}
		if s.plain != nil {
			for _, p := range s.plain.parts {
				named[p] = true
			}
		}
	}
	for _, s := range apartScripts() {
		checkApart(t, s)
		for _, p := range append(s.parts, s.name) {
			named[p] = true
		}
	}
	assert.Equal(t, parseHeader(t, part(t, "state")).keys, len(structures))
	assert.Equal(t, parseHeader(t, part(t, "select")).args, listScript.args)
	files, err := fs.Glob(sources, "lua/*.lua")
	assert.NoError(t, err)
	assert.Equal(t, len(files), len(named), "a file that no script uses")
}

func part(t *testing.T, name string) string {
	t.Helper()
	source, err := sources.ReadFile("lua/" + name + ".lua")
	assert.NoError(t, err)
	return string(source)
}

// A script that built the name of a key would miss the names that it is given here, or leave a key
// with a name that nobody gave.
func TestScriptsTouchDeclaredKeysOnly(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	var given sync.Map
	given.Store(listKey("default"), true)
	given.Store(topicKeys("default")[0], true)
	for _, k := range lockKeys("default") {
		given.Store("other:"+k, true)
	}
	storagetest.Rules(t, func(t *testing.T) storage.Engine {
		s := openQuiet(t, server.URL())
		s.keys = func(queue string) []string {
			keys := queueKeys("default", queue)
			for i, k := range keys {
				sum := sha256.Sum256([]byte(k))
				keys[i] = hex.EncodeToString(sum[:8])
				given.Store(keys[i], true)
			}
			return keys
		}
		for i, k := range s.lockKeys {
			s.lockKeys[i] = "other:" + k
		}
		return s
	})
	found := strings.Fields(server.Do(t, "KEYS", "*"))
	assert.True(t, len(found) > 100)
	for _, k := range found {
		_, ok := given.Load(k)
		assert.True(t, ok, "a key that was not given:", k)
	}
}

func openQuiet(t testing.TB, url string) *Store {
	t.Helper()
	s, err := OpenWith(context.WithoutCancel(t.Context()), url, Options{Logger: slog.New(slog.DiscardHandler)})
	assert.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	return s
}

// The text of scripts is constant: whatever queues and arguments they run with, the server caches
// each of them once.
func TestScriptCacheDoesNotGrow(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := openQuiet(t, server.URL())
	for i := range 50 {
		queue := storagetest.NewQueueName()
		rec := storage.Record{ID: strconv.Itoa(i), Body: make([]byte, i), Delay: time.Duration(i) * time.Millisecond, Priority: i % 10}
		_, err := s.Enqueue(t.Context(), time.Time{}, queue, []storage.Record{rec})
		assert.NoError(t, err)
		_, err = s.Claim(t.Context(), time.Time{}, storage.Claim{Queue: queue, Limit: i + 1, Lease: time.Minute})
		assert.NoError(t, err)
		_, err = s.Stats(t.Context(), time.Time{}, queue)
		assert.NoError(t, err)
	}
	assert.Equal(t, redisconn.ParseInfo(server.Do(t, "INFO", "memory"))["number_of_cached_scripts"], "3")
}
