// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/storage"
)

// Every command that a script calls is asked for.
func TestCommandsAreThoseOfTheScripts(t *testing.T) {
	files, err := filepath.Glob("../../redisstore/lua/*.lua")
	assert.NoError(t, err)
	assert.True(t, len(files) > 0)
	for _, name := range files {
		text, err := os.ReadFile(name)
		assert.NoError(t, err)
		for _, m := range regexp.MustCompile(`call\("([A-Z]+)"`).FindAllStringSubmatch(string(text), -1) {
			asked := slices.ContainsFunc(commands, func(c string) bool { return strings.HasPrefix(c, m[1]+" ") || c == m[1] })
			assert.True(t, asked, m[1]+" of "+name+" is missing in commands")
		}
	}
}

// What no server at hand says.
func TestRareAnswers(t *testing.T) {
	for _, c := range []struct {
		info  map[string]string
		check func(*server) []Finding
		want  Severity
	}{
		{map[string]string{"redis_version": "6.0.16"}, (*server).version, Problem},
		{map[string]string{"redis_version": "6.2.0"}, (*server).version, ""},
		{map[string]string{"redis_version": "10.0.1"}, (*server).version, ""},
		{map[string]string{"aof_enabled": "1", "aof_last_write_status": "err"}, (*server).failedWrites, Problem},
		{map[string]string{"aof_enabled": "1", "aof_last_write_status": "ok"}, (*server).failedWrites, ""},
		{map[string]string{"role": "slave", "cluster_enabled": "1"}, (*server).replicas, ""},
		{map[string]string{"connected_slaves": "1", "slave0": "ip=10.0.0.2,port=6379,state=online,offset=1,lag=40"}, (*server).replicas, Warning},
		{map[string]string{"connected_slaves": "1", "slave0": "ip=10.0.0.2,port=6379,state=wait_bgsave,offset=1,lag=0"}, (*server).replicas, Warning},
		{map[string]string{"connected_slaves": "1", "slave0": "ip=10.0.0.2,port=6379,state=online,offset=1,lag=1"}, (*server).replicas, ""},
	} {
		found := c.check(&server{address: "x", info: c.info})
		assert.Equal(t, Worst(found), c.want, c.info)
	}
}

func TestQueueFindings(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	late := now.Add(-time.Hour)
	for want, q := range map[string]queue{
		"paused":      {stats: storage.Stats{Config: storage.QueueConfig{Paused: true}, Delayed: 1}},
		"no consumer": {stats: storage.Stats{Ready: 1, NextDue: late}},
		"lag":         {stats: storage.Stats{Ready: 1, NextDue: late, Leased: 1}},
		"dead":        {stats: storage.Stats{Dead: 101}},
		"leases":      {stats: storage.Stats{Total: storage.Counters{Claimed: 900, Lapsed: 10}}},
		"clock steps": {stats: storage.Stats{Total: storage.Counters{ClockSteps: 1}}},
		"big key":     {usage: usage{key: "k", largest: 5 << 30}},
		"":            {stats: storage.Stats{Delayed: 5, Ready: 3, NextDue: now.Add(-time.Second), Dead: 2, Total: storage.Counters{Claimed: 2000, Lapsed: 10}}},
	} {
		q.name, q.limits, q.stats.Now = "q", Defaults(), now
		found := q.look()
		if want == "" {
			assert.Equal(t, found, nil)
			continue
		}
		assert.Equal(t, len(found), 1, found)
		assert.Equal(t, found[0].Check, want)
		assert.True(t, len(found[0].Mend) > 0)
	}
}

func TestForecast(t *testing.T) {
	at := time.Unix(1_700_000_000, 0)
	first := Census{At: at, Records: 1000, Bytes: 500_000}
	for _, c := range []struct {
		grown int64
		room  int64
		want  Severity
		says  string
	}{
		{100, 5_000_000, Problem, "full in about 17 minutes"},
		{1, 5_000_000, Warning, "full in about 28 hours"},
		{1, 500_000_000, Note, "full in about 116 days"},
		{0, 5_000_000, Note, "room for 10000 more"},
	} {
		second := Census{At: at.Add(10 * time.Second), Records: 1000 + c.grown, Bytes: 500 * (1000 + c.grown)}
		found := Forecast("here", first, second, c.room, Defaults())
		assert.Equal(t, Worst(found), c.want)
		assert.True(t, strings.Contains(found[0].What, c.says), found[0].What)
	}
	assert.Equal(t, Forecast("here", Census{}, Census{}, 1, Defaults()), nil)
}

func TestDirectory(t *testing.T) {
	look := func(prepare func(dir string, l *Limits)) []Finding {
		d := Directory{Path: t.TempDir(), Limits: Defaults()}
		d.Limits.Sync, d.Limits.FreeBytes, d.Limits.FreePercent = time.Minute, 1, 0
		assert.NoError(t, os.WriteFile(filepath.Join(d.Path, mark), nil, 0o600))
		prepare(d.Path, &d.Limits)
		found := d.Look()
		_, err := os.Stat(filepath.Join(d.Path, scratch))
		assert.Equal(t, os.IsNotExist(err), Worst(found) != Problem || found[0].Check != "write", found)
		return found
	}
	assert.Equal(t, look(func(string, *Limits) {}), nil)
	for want, prepare := range map[string]func(dir string, l *Limits){
		"directory":  func(dir string, _ *Limits) { assert.NoError(t, os.Remove(filepath.Join(dir, mark))) },
		"write":      func(dir string, _ *Limits) { assert.NoError(t, os.Mkdir(filepath.Join(dir, scratch), 0o700)) },
		"sync":       func(_ string, l *Limits) { l.Sync = 0 },
		"disk space": func(_ string, l *Limits) { l.FreePercent = 101 },
	} {
		found := look(prepare)
		assert.Equal(t, len(found), 1, found)
		assert.Equal(t, found[0].Check, want)
	}
	missing := Directory{Path: filepath.Join(t.TempDir(), "none"), Limits: Defaults()}
	assert.Equal(t, Worst(missing.Look()), Note)
}
