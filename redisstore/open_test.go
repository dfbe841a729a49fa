// SPDX-License-Identifier: Apache-2.0

package redisstore_test

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/internal/redistest"
	"github.com/bidemq/bide/redisstore"
	"github.com/bidemq/bide/storage"
	"github.com/bidemq/bide/storage/storagetest"
)

func TestOpenRefusesBadURLs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ url, says string }{
		{"", "not one of redis, rediss, redis+unix, redis+sentinel, redis+cluster"},
		{"localhost:6379", "not one of"},
		{"postgres://localhost", `"postgres" is not one of`},
		{"redis://", "a host is missing"},
		{"redis://a,b", "takes one host"},
		{"redis://a:port", "is not between 1 and 65535"},
		{"redis://a:99999", "is not between 1 and 65535"},
		{"redis://a/x", `database "x" is not a number`},
		{"redis://a/1/2", "says more than redis understands"},
		{"redis://a?timeout=5", `parameter "timeout" is not known to redis, namespace and replicas are`},
		{"redis://a?namespace=%2F", "namespace"},
		{"redis+unix://host/path", "wants the path of a socket"},
		{"redis+unix:///", "wants the path of a socket"},
		{"redis+unix:///a.sock?db=x", `database "x" is not a number`},
		{"redis+sentinel://a,b", "wants the name of a primary"},
		{"redis+sentinel://a,/bide", "a host is missing"},
		{"redis+cluster://a/1", "says more than redis+cluster understands"},
		{"redis://user:secret%zz@a", "cannot be read"},
	} {
		_, err := redisstore.Open(t.Context(), c.url)
		assert.ErrorIs(t, err, storage.ErrInvalid, c.url)
		assert.True(t, strings.Contains(err.Error(), c.says), c.url, err)
		assert.True(t, !strings.Contains(err.Error(), "secret"), err)
	}
}

func TestOpenNamesAnUnreachableServer(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	assert.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() }) // accepts in the kernel and never answers
	for _, c := range []struct{ url, names string }{
		{"redis+unix:///nowhere/redis.sock", "/nowhere/redis.sock"},
		{"redis://127.0.0.1:1", "127.0.0.1:1"},
		{"redis://" + l.Addr().String(), l.Addr().String()},
		{"redis+cluster://127.0.0.1:1,127.0.0.1:2", "127.0.0.1:1,127.0.0.1:2"},
		{"redis+sentinel://127.0.0.1:1,127.0.0.1:2/bide", "127.0.0.1:1,127.0.0.1:2"},
	} {
		t.Run(c.names, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			_, err := redisstore.Open(t.Context(), c.url)
			assert.ErrorIs(t, err, storage.ErrUnavailable)
			assert.True(t, strings.Contains(err.Error(), c.names), err)
			assert.True(t, time.Since(began) < 7*time.Second, time.Since(began)) // five, and a busy machine
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = redisstore.Open(ctx, "redis://"+l.Addr().String())
	assert.ErrorIs(t, err, context.Canceled)
}

func TestOpenRefusesEviction(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Config("maxmemory-policy", "allkeys-lru"))
	_, err := redisstore.Open(t.Context(), server.URL())
	assert.ErrorIs(t, err, storage.ErrInvalid)
	assert.True(t, strings.Contains(err.Error(), "allkeys-lru"), err)
}

func TestOpenWarnsAboutNoPersistence(t *testing.T) {
	t.Parallel()
	warnings := func(options ...redistest.Option) string {
		var log bytes.Buffer
		s, err := redisstore.OpenWith(t.Context(), redistest.Start(t, options...).URL(),
			redisstore.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		assert.NoError(t, err)
		assert.NoError(t, s.Close())
		return log.String()
	}
	assert.True(t, strings.Contains(warnings(), "keeps nothing"))
	assert.Equal(t, warnings(redistest.AppendOnly("everysec")), "")
	assert.Equal(t, warnings(redistest.Config("save", "60 1")), "")
}

func TestOpenTakesTheRightKindOfServer(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t)
	_, err := redisstore.Open(t.Context(), c.Nodes[0].URL())
	assert.ErrorIs(t, err, storage.ErrInvalid)
	assert.True(t, strings.Contains(err.Error(), "redis+cluster"), err)
	_, port, _ := net.SplitHostPort(c.Nodes[0].Address())
	open(t, "redis+cluster://127.0.0.1:"+port)
}

func TestOpenWithUserDatabaseAndNamespace(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	server.Do(t, "ACL", "SETUSER", "ann", "on", ">pass", "+@all", "~*", "&*")
	server.Do(t, "CONFIG", "SET", "requirepass", "old")
	base := "redis+unix://" + server.Address()
	_, err := redisstore.Open(t.Context(), base)
	assert.ErrorIs(t, err, storage.ErrUnavailable)
	_, err = redisstore.Open(t.Context(), "redis+unix://ann:wrong@"+server.Address())
	assert.ErrorIs(t, err, storage.ErrUnavailable)
	assert.True(t, !strings.Contains(err.Error(), "wrong@"), err)

	user := "redis+unix://ann:pass@" + server.Address()
	queue := storagetest.NewQueueName()
	enqueue(t, open(t, user), queue, storage.Record{ID: "a"})
	for url, there := range map[string]bool{
		user:                                    true,
		user + "?db=1":                          false,
		user + "?namespace=other":               false,
		user + "?namespace=default":             true,
		"redis+unix://:old@" + server.Address(): true,
	} {
		_, err := open(t, url).Get(t.Context(), time.Time{}, queue, "a")
		if there {
			assert.NoError(t, err, url)
		} else {
			assert.ErrorIs(t, err, storage.ErrNotFound, url)
		}
	}
}

func TestOpenWithTLS(t *testing.T) {
	t.Parallel()
	url, trusted := redistest.StartTLS(t)
	_, err := redisstore.Open(t.Context(), url)
	assert.ErrorIs(t, err, storage.ErrUnavailable, "a certificate that nobody signed is not trusted")
	o := silent()
	o.TLS = trusted
	s, err := redisstore.OpenWith(t.Context(), url, o)
	assert.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	queue := storagetest.NewQueueName()
	enqueue(t, s, queue, storage.Record{ID: "a"})
	assert.Equal(t, len(claim(t, s, queue, 1, time.Minute).Records), 1)
}

func TestOptionsBoundTheBody(t *testing.T) {
	t.Parallel()
	s, err := redisstore.OpenWith(t.Context(), redistest.Shared(t).URL(), redisstore.Options{MaxBody: 10, Namespace: "small", Logger: silent().Logger})
	assert.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	results, err := s.Enqueue(t.Context(), time.Time{}, storagetest.NewQueueName(), []storage.Record{
		{ID: "a", Body: make([]byte, 11)}, {ID: "b", Body: make([]byte, 10)},
	})
	assert.NoError(t, err)
	assert.ErrorIs(t, results[0].Err, storage.ErrTooLarge)
	assert.NoError(t, results[1].Err)
}

// A batch of more than one script call should bring is stored whole, and comes back whole.
func TestLargeBatches(t *testing.T) {
	t.Parallel()
	s, queue := open(t, redistest.Shared(t).URL()), storagetest.NewQueueName()
	body := bytes.Repeat([]byte{0, 1, 254, 255}, storage.DefaultBody/4)
	var recs []storage.Record
	for range 20 {
		recs = append(recs, storage.Record{ID: storagetest.NewQueueName(), Body: body})
	}
	enqueue(t, s, queue, recs...)
	got := 0
	for got < len(recs) {
		c, err := s.Claim(t.Context(), time.Time{}, storage.Claim{Queue: queue, Limit: 1000, MaxBytes: 5 << 20, Lease: time.Minute})
		assert.NoError(t, err)
		assert.Equal(t, len(c.Records), 5)
		for _, r := range c.Records {
			assert.Equal(t, r.ID, recs[got].ID)
			assert.True(t, bytes.Equal(r.Body, body))
			got++
		}
	}
}
