// SPDX-License-Identifier: Apache-2.0

// Package importtest shows that bide imports what the real asynq library has written. It is a module
// of its own so that bide does not depend on asynq.
package importtest

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/rueidis"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/internal/importer"
	"github.com/bidemq/bide/internal/redisconn"
	"github.com/bidemq/bide/internal/redistest"
	"github.com/bidemq/bide/memstore"
	"github.com/bidemq/bide/storage"
)

const queue = "mails"

type fixture struct {
	server    *redistest.Server
	option    asynq.RedisClientOpt
	client    *asynq.Client
	inspector *asynq.Inspector
	redis     rueidis.Client
	engine    storage.Engine
	bide      *bide.Client
}

func setUp(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{server: redistest.Start(t), engine: memstore.New(memstore.Options{})}
	f.option = asynq.RedisClientOpt{Network: "unix", Addr: f.server.Address()}
	f.client, f.inspector = asynq.NewClient(f.option), asynq.NewInspector(f.option)
	target, err := redisconn.Parse(f.server.URL())
	assert.NoError(t, err)
	f.redis, err = redisconn.Dial(t.Context(), target, nil)
	assert.NoError(t, err)
	f.bide = bide.NewClient(f.engine, bide.ClientConfig{Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(func() {
		_ = f.bide.Close(context.Background())
		f.redis.Close()
		_ = f.inspector.Close()
		_ = f.client.Close()
	})
	return f
}

func (f *fixture) enqueue(t *testing.T, kind, payload string, options ...asynq.Option) {
	t.Helper()
	task := asynq.NewTaskWithHeaders(kind, []byte(payload), map[string]string{"trace": "t-" + payload})
	_, err := f.client.Enqueue(task, append(options, asynq.Queue(queue))...)
	assert.NoError(t, err)
}

func (f *fixture) run(t *testing.T, c importer.Config) (r importer.Report, remarks []string, refused map[string]error) {
	t.Helper()
	refused = map[string]error{}
	c.Notes, c.Client, c.Target, c.Queue = f.redis, f.bide, "memory", queue
	c.Total = func(int64) {}
	c.Remark = func(text string) { remarks = append(remarks, text) }
	c.Each = func(e importer.Entry, _ importer.Action, err error) {
		if err != nil {
			refused[e.Name] = err
		}
	}
	r, err := importer.Run(t.Context(), &importer.Asynq{Client: f.redis, Queue: queue}, c)
	assert.NoError(t, err)
	return r, remarks, refused
}

func (f *fixture) get(t *testing.T, id string) storage.Record {
	t.Helper()
	r, err := f.engine.Get(t.Context(), time.Time{}, queue, id)
	assert.NoError(t, err, id)
	return r
}

// retried runs an asynq server until its only task is to be retried or archived.
func (f *fixture) retried(t *testing.T, in func(*asynq.QueueInfo) int) {
	t.Helper()
	server := asynq.NewServer(f.option, asynq.Config{
		Queues: map[string]int{queue: 1}, LogLevel: asynq.FatalLevel,
		RetryDelayFunc: func(int, error, *asynq.Task) time.Duration { return time.Hour },
	})
	handler := asynq.HandlerFunc(func(context.Context, *asynq.Task) error { return errors.New("no mail server") })
	assert.NoError(t, server.Start(handler))
	redistest.Until(t, "asynq has tried the task", func() bool {
		info, err := f.inspector.GetQueueInfo(queue)
		return err == nil && in(info) == 1
	})
	server.Shutdown()
}

func TestImportFromAsynq(t *testing.T) {
	f := setUp(t)
	due := time.Now().Add(time.Hour).Truncate(time.Second)

	f.enqueue(t, "mail:archived", "given up", asynq.TaskID("archived"), asynq.MaxRetry(0))
	f.retried(t, func(i *asynq.QueueInfo) int { return i.Archived })
	f.enqueue(t, "mail:retry", "again", asynq.TaskID("retry"), asynq.MaxRetry(5))
	f.retried(t, func(i *asynq.QueueInfo) int { return i.Retry })
	f.enqueue(t, "mail:later", "later", asynq.TaskID("later"), asynq.ProcessAt(due), asynq.MaxRetry(3), asynq.Unique(time.Hour))
	f.enqueue(t, "mail:late", "late", asynq.TaskID("late"), asynq.Deadline(time.Now().Add(-time.Minute)))
	f.enqueue(t, "mail:soon", "soon", asynq.TaskID("soon"), asynq.Deadline(due))
	f.enqueue(t, "mail:now", "first", asynq.TaskID("first"))
	f.enqueue(t, "mail:now", "second", asynq.TaskID("second"))
	f.enqueue(t, "mail:group", "third", asynq.TaskID("group"), asynq.Group("g"), asynq.ProcessAt(due))

	dry, _, _ := f.run(t, importer.Config{DryRun: true})
	assert.Equal(t, dry, importer.Report{Imported: 6, Refused: 1})

	r, remarks, refused := f.run(t, importer.Config{Batch: 2})
	assert.Equal(t, r, importer.Report{Imported: 6, Refused: 1})
	assert.ErrorIs(t, refused["late"], storage.ErrExpired)
	assert.True(t, slices.ContainsFunc(remarks, func(s string) bool { return strings.HasPrefix(s, "1 archived tasks are left alone") }), remarks)

	later := f.get(t, "later")
	assert.Equal(t, string(later.Body), "later")
	assert.Equal(t, later.Headers, map[string]string{"trace": "t-later", importer.HeaderType: "mail:later"})
	assert.Equal(t, later.Due.Unix(), due.Unix())
	assert.Equal(t, later.MaxAttempts, 4)
	retry := f.get(t, "retry")
	assert.Equal(t, retry.Headers[importer.HeaderRetried], "1")
	assert.Equal(t, retry.MaxAttempts, 5)
	assert.Equal(t, retry.State, storage.Delayed)
	assert.Equal(t, f.get(t, "group").Key, "g")
	assert.True(t, f.get(t, "soon").ExpireIn > 55*time.Minute)

	got, err := f.engine.Claim(t.Context(), time.Time{}, storage.Claim{Queue: queue, Limit: 10, Lease: time.Minute})
	assert.NoError(t, err)
	var order []string
	for _, rec := range got.Records {
		order = append(order, rec.ID)
		_, err := f.engine.Settle(t.Context(), time.Time{}, []storage.Settlement{{Receipt: rec.Receipt(queue), Verdict: storage.Ack}})
		assert.NoError(t, err)
	}
	assert.Equal(t, order, []string{"soon", "first", "second"})

	// Again nothing comes, also of a task that asynq has made pending meanwhile.
	assert.NoError(t, f.inspector.RunTask(queue, "later"))
	r, _, _ = f.run(t, importer.Config{})
	assert.Equal(t, r, importer.Report{Known: 6, Refused: 1})

	// Removed, asynq knows nothing of them any more; a unique one may come again.
	r, _, _ = f.run(t, importer.Config{Remove: true})
	assert.Equal(t, r, importer.Report{Known: 6, Refused: 1, Removed: 6})
	info, err := f.inspector.GetQueueInfo(queue)
	assert.NoError(t, err)
	assert.Equal(t, []int{info.Pending, info.Scheduled, info.Retry, info.Archived}, []int{1, 0, 0, 1})
	f.enqueue(t, "mail:later", "later", asynq.TaskID("later"), asynq.Unique(time.Hour))
	assert.Equal(t, f.server.Do(t, "EXISTS", "asynq:{mails}:t:first"), "0")
	r, _, _ = f.run(t, importer.Config{Remove: true})
	assert.Equal(t, r, importer.Report{Imported: 1, Refused: 1, Removed: 1})
}

// Of a queue that holds many types, one can be taken.
func TestImportOneType(t *testing.T) {
	f := setUp(t)
	for i, kind := range []string{"a", "b", "a"} {
		f.enqueue(t, kind, string(rune('x'+i)))
	}
	r, err := importer.Run(t.Context(), &importer.Asynq{Client: f.redis, Queue: queue, Type: "a"}, importer.Config{
		Notes: f.redis, Client: f.bide, Queue: queue, Remove: true,
		Each: func(importer.Entry, importer.Action, error) {}, Total: func(int64) {}, Remark: func(string) {},
	})
	assert.NoError(t, err)
	assert.Equal(t, r, importer.Report{Imported: 2, Removed: 2})
	assert.Equal(t, f.server.Do(t, "LLEN", "asynq:{mails}:pending"), "1")
}
