// SPDX-License-Identifier: Apache-2.0

package doctor_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/internal/doctor"
	"github.com/bidemq/bide/internal/redisconn"
	"github.com/bidemq/bide/internal/redistest"
)

func connect(t *testing.T, url string) rueidis.Client {
	t.Helper()
	target, err := redisconn.Parse(url)
	assert.NoError(t, err)
	client, err := redisconn.Dial(t.Context(), target, nil)
	assert.NoError(t, err)
	t.Cleanup(client.Close)
	return client
}

func examine(t *testing.T, url string, change func(*doctor.Redis)) []doctor.Finding {
	t.Helper()
	r := doctor.Redis{Client: connect(t, url), Limits: patient(), Now: time.Now}
	if change != nil {
		change(&r)
	}
	found, err := r.Look(t.Context())
	assert.NoError(t, err)
	return found
}

// patient are limits that a busy machine does not exceed.
func patient() doctor.Limits {
	l := doctor.Defaults()
	l.Ping, l.Sync, l.Slow = time.Minute, time.Minute, time.Minute
	return l
}

// one fails unless a check has found one thing, and returns it.
func one(t *testing.T, found []doctor.Finding, check string) doctor.Finding {
	t.Helper()
	i := slices.IndexFunc(found, func(f doctor.Finding) bool { return f.Check == check })
	if i < 0 {
		t.Fatalf("%s found nothing in %+v", check, found)
	}
	assert.True(t, found[i].What != "" && found[i].Why != "" && found[i].Where != "")
	return found[i]
}

// good are the settings of a server that has nothing to mend.
func good() []redistest.Option {
	return []redistest.Option{redistest.AppendOnly("everysec"), redistest.Config("maxmemory", "200mb")}
}

func TestSilenceAboutAGoodServer(t *testing.T) {
	t.Parallel()
	assert.Equal(t, examine(t, redistest.Start(t, good()...).URL(), nil), nil)
}

// Looking at a server runs nothing that writes, and nothing that takes longer the more it holds.
func TestLookingOnlyReads(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, good()...)
	examine(t, s.URL(), nil)
	allowed := []string{
		"ping", "info", "time", "hello", "client|setname", "client|setinfo", "client|tracking", "select", "config|get", "slowlog|get", "acl|whoami", "acl|dryrun",
	}
	for line := range strings.Lines(s.Do(t, "INFO", "commandstats")) {
		if name, ok := strings.CutPrefix(line, "cmdstat_"); ok {
			name, _, _ = strings.Cut(name, ":")
			assert.True(t, slices.Contains(allowed, name), name)
		}
	}
}

func TestServers(t *testing.T) {
	t.Parallel()
	none := func(*testing.T, *redistest.Server) {}
	do := func(commands ...string) func(*testing.T, *redistest.Server) {
		return func(t *testing.T, s *redistest.Server) {
			t.Helper()
			for _, c := range commands {
				s.Do(t, strings.Split(c, "|")...)
			}
		}
	}
	for _, c := range []struct {
		check    string
		severity doctor.Severity
		options  []redistest.Option
		provoke  func(*testing.T, *redistest.Server)
		change   func(*doctor.Redis)
	}{
		{check: "eviction", severity: doctor.Problem, options: []redistest.Option{redistest.Config("maxmemory-policy", "allkeys-lru")}},
		{check: "maxmemory", severity: doctor.Warning, options: []redistest.Option{redistest.Config("maxmemory", "0")}},
		{check: "memory", severity: doctor.Warning, provoke: do("SETRANGE|k|157286400|x")},
		{check: "memory", severity: doctor.Problem, provoke: do("SETRANGE|k|157286400|x", "SETRANGE|l|25165824|x")},
		{check: "persistence", severity: doctor.Problem, options: []redistest.Option{redistest.Config("appendonly", "no")}},
		{check: "persistence", severity: doctor.Warning, options: []redistest.Option{redistest.Config("appendonly", "no", "save", "3600 1")}},
		{check: "fsync", severity: doctor.Warning, options: []redistest.Option{redistest.AppendOnly("no")}},
		{check: "timeout", severity: doctor.Warning, options: []redistest.Option{redistest.Config("timeout", "5")}},
		{check: "keepalive", severity: doctor.Warning, options: []redistest.Option{redistest.Config("tcp-keepalive", "0")}},
		{check: "pubsub buffer", severity: doctor.Warning, provoke: do("CONFIG|SET|client-output-buffer-limit|pubsub 1000 0 0")},
		{check: "slow commands", severity: doctor.Warning, provoke: do("DEBUG|SLEEP|0.06"), change: func(r *doctor.Redis) { r.Limits.Slow = 50 * time.Millisecond }},
		{check: "round trip", severity: doctor.Warning, change: func(r *doctor.Redis) { r.Limits.Ping = 0 }},
		{check: "clock", severity: doctor.Warning, change: func(r *doctor.Redis) { r.Now = func() time.Time { return time.Now().Add(time.Hour) } }},
		{check: "snapshot", severity: doctor.Warning, provoke: func(t *testing.T, s *redistest.Server) {
			t.Helper()
			assert.NoError(t, os.MkdirAll(filepath.Join(filepath.Dir(s.Address()), "dump.rdb", "full"), 0o755))
			s.Do(t, "BGSAVE")
			redistest.Until(t, "the snapshot has failed", func() bool { return strings.Contains(s.Do(t, "INFO", "persistence"), "rdb_last_bgsave_status:err") })
		}},
		{check: "log", severity: doctor.Warning, provoke: func(t *testing.T, s *redistest.Server) {
			t.Helper()
			logs := filepath.Join(filepath.Dir(s.Address()), "appendonlydir")
			assert.NoError(t, os.RemoveAll(logs))
			assert.NoError(t, os.WriteFile(logs, nil, 0o600))
			c := connect(t, s.URL())
			_ = c.Do(t.Context(), c.B().Bgrewriteaof().Build()).Error() // it says so at once
			redistest.Until(t, "the rewrite has failed", func() bool {
				return strings.Contains(s.Do(t, "INFO", "persistence"), "aof_last_bgrewrite_status:err")
			})
		}},
	} {
		t.Run(c.check+","+string(c.severity), func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t, append(good(), c.options...)...)
			if c.provoke == nil {
				c.provoke = none
			}
			c.provoke(t, s)
			found := examine(t, s.URL(), c.change)
			assert.Equal(t, len(found), 1, found)
			assert.Equal(t, one(t, found, c.check).Severity, c.severity)
			assert.True(t, len(found[0].Mend) > 0)
		})
	}
}

// A command that mends does mend.
func TestMendingMends(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Config("maxmemory-policy", "allkeys-lru", "timeout", "5", "tcp-keepalive", "0"))
	s.Do(t, "CONFIG", "SET", "client-output-buffer-limit", "pubsub 1000 0 0")
	found := examine(t, s.URL(), nil)
	assert.Equal(t, len(found), 6, found)
	for _, f := range found {
		for _, m := range f.Mend {
			if setting, ok := strings.CutPrefix(m, "CONFIG SET "); ok {
				name, value, _ := strings.Cut(setting, " ")
				s.Do(t, "CONFIG", "SET", name, strings.Trim(value, "'"))
			}
		}
	}
	assert.Equal(t, examine(t, s.URL(), nil), nil)
}

func TestReplicasAndTheirPrimary(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinels(t)
	found := examine(t, s.Primary.URL(), nil)
	assert.True(t, strings.Contains(one(t, found, "persistence").Why, "replicas copy the emptiness"))
	assert.Equal(t, one(t, found, "min replicas").Severity, doctor.Warning)
	assert.Equal(t, one(t, examine(t, s.Replica.URL(), nil), "role").Severity, doctor.Problem)
	found = examine(t, s.URL(), nil) // finds the primary
	assert.True(t, !slices.ContainsFunc(found, func(f doctor.Finding) bool { return f.Check == "role" }), found)
}

func TestClusters(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t)
	hurt := func(f doctor.Finding) bool { return f.Check == "cluster" }
	whole := examine(t, c.URL(), nil)
	assert.True(t, !slices.ContainsFunc(whole, hurt), whole)
	c.Nodes[0].Do(t, "CLUSTER", "DELSLOTS", "0")
	redistest.Until(t, "the cluster notices", func() bool { return strings.Contains(c.Nodes[0].Do(t, "CLUSTER", "INFO"), "cluster_state:fail") })
	assert.Equal(t, one(t, examine(t, c.Nodes[0].URL(), nil), "cluster").Severity, doctor.Problem)
}

func TestAccess(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, good()...)
	s.Do(t, "ACL", "SETUSER", "weak", "on", ">pw", "~*", "&*", "+@all", "-zscan", "-publish")
	s.Do(t, "ACL", "SETUSER", "others", "on", ">pw", "~others:*", "&*", "+@all")
	s.Do(t, "ACL", "SETUSER", "managed", "on", ">pw", "~*", "&*", "+@all", "-config", "-acl")
	s.Do(t, "ACL", "SETUSER", "exact", "on", ">pw", "~bide:*", "&bide:*", "+@all")
	as := func(user string) []doctor.Finding {
		return examine(t, strings.Replace(s.URL(), "redis+unix://", "redis+unix://"+user+":pw@", 1), nil)
	}
	weak := one(t, as("weak"), "access")
	assert.Equal(t, weak.Severity, doctor.Problem)
	assert.Equal(t, weak.What, "user weak may not use PUBLISH, ZSCAN on bide's keys and channels")
	assert.True(t, strings.Contains(one(t, as("others"), "access").What, "HGET"))
	managed := as("managed")
	assert.Equal(t, doctor.Worst(managed), doctor.Note)
	assert.Equal(t, one(t, managed, "settings").Harm, doctor.Unseen)
	assert.Equal(t, one(t, managed, "access").Harm, doctor.Unseen)
	assert.Equal(t, as("exact"), nil)
}
