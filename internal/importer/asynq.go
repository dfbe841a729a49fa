// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"context"
	"fmt"
	"iter"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/storage"
)

// Headers that imported tasks have.
const (
	HeaderType    = "asynq-type"    // of the task
	HeaderRetried = "asynq-retried" // how often asynq had retried it, if ever
)

// Asynq is a queue of asynq: its scheduled, retry and pending tasks. Its layout is that of version
// 0.19 and later.
type Asynq struct {
	Client rueidis.Client
	Queue  string
	Type   string // only tasks of this type, "" is all

	gone int // elements of the batch under way that were removed
}

func (a *Asynq) name(of string) string { return "asynq:{" + a.Queue + "}:" + of }

func (a *Asynq) key() string { return a.name("scheduled") }

func (a *Asynq) total(ctx context.Context) (int64, error) {
	return a.sum(ctx,
		a.Client.B().Zcard().Key(a.name("scheduled")).Build(),
		a.Client.B().Zcard().Key(a.name("retry")).Build(),
		a.Client.B().Llen().Key(a.name("pending")).Build())
}

func (a *Asynq) sum(ctx context.Context, commands ...rueidis.Completed) (sum int64, err error) {
	for _, r := range a.Client.DoMulti(ctx, commands...) {
		n, err := r.AsInt64()
		if err != nil {
			return 0, unavailable("count asynq's tasks", err)
		}
		sum += n
	}
	return sum, nil
}

// aside counts what is in states that bide has no counterpart of.
func (a *Asynq) aside(ctx context.Context) (remarks []string, err error) {
	for _, s := range []struct {
		count rueidis.Completed
		text  string
	}{
		{a.Client.B().Zcount().Key("asynq:servers").Min(strconv.FormatInt(time.Now().Unix(), 10)).Max("+inf").Build(), "%d asynq servers are running: stop them, or they handle what is imported too"},
		{a.Client.B().Llen().Key(a.name("active")).Build(), "%d active tasks are left alone: they are being handled, or their server died and asynq will retry them; import again when they are pending"},
		{a.Client.B().Zcard().Key(a.name("archived")).Build(), "%d archived tasks are left alone: asynq gave them up; run them again there (asynq task run) to import them"},
		{a.Client.B().Zcard().Key(a.name("completed")).Build(), "%d completed tasks are left alone: they are done"},
		{a.Client.B().Scard().Key(a.name("groups")).Build(), "%d groups whose tasks are being aggregated are left alone: let asynq aggregate them first"},
		{a.Client.B().Exists().Key(a.name("paused")).Build(), "the queue is paused in asynq (%d); messages are not: bide pause stops their delivery"},
	} {
		n, err := a.sum(ctx, s.count)
		if err != nil {
			return nil, err
		}
		if n > 0 {
			remarks = append(remarks, fmt.Sprintf(s.text, n))
		}
	}
	return remarks, nil
}

// batches reads in the direction that tasks move, so that none slips past.
func (a *Asynq) batches(ctx context.Context, _ *notes, size int) iter.Seq2[[]Entry, error] {
	return func(yield func([]Entry, error) bool) {
		for _, set := range []string{"scheduled", "retry"} {
			z := &ZSet{Client: a.Client, Key: a.name(set), IDs: true, Score: Seconds}
			for entries, err := range z.batches(ctx, nil, size) {
				if entries, err = a.fill(ctx, z.Key, entries, err); !yield(entries, err) || err != nil {
					return
				}
			}
		}
		pending := a.name("pending")
		for ids, err := range elements(ctx, a.Client, pending, true, size, func() int { return a.gone }) {
			a.gone = 0
			entries := make([]Entry, len(ids))
			for i, id := range ids {
				entries[i] = Entry{Name: id, value: id}
			}
			if entries, err = a.fill(ctx, pending, entries, err); !yield(entries, err) || err != nil {
				return
			}
		}
	}
}

// fill reads the tasks of entries that are ids.
func (a *Asynq) fill(ctx context.Context, origin string, entries []Entry, err error) ([]Entry, error) {
	if err != nil || len(entries) == 0 {
		return nil, err
	}
	reads := make(rueidis.Commands, len(entries))
	for i, e := range entries {
		reads[i] = a.Client.B().Hget().Key(a.name("t:" + e.value)).Field("msg").Build()
	}
	kept := entries[:0]
	for i, r := range a.Client.DoMulti(ctx, reads...) {
		e := entries[i]
		data, err := r.ToString()
		switch {
		case rueidis.IsRedisNil(err):
			e.Err = fmt.Errorf("%w: asynq has no task of this id", bide.ErrNotFound)
		case err != nil:
			return nil, unavailable("read asynq's tasks", err)
		default:
			var t task
			if t, e.Err = decodeTask([]byte(data)); e.Err == nil {
				if a.Type != "" && t.kind != a.Type {
					continue
				}
				e.Message, e.Err = t.message(e.value, e.Message.Due)
				e.unique = t.unique
				e.print = printOf(0, t.payload, e.Message.Headers) // without the due time, which passes when the task becomes pending
			}
		}
		e.origin, e.body = origin, sha(data)
		kept = append(kept, e)
	}
	return kept, nil
}

// message is what a task becomes, or an error if its deadline has passed. due is zero for a pending
// one. The deadline of a task becomes an
// expiry; its timeout, retention and uniqueness lock have no counterpart.
func (t *task) message(id string, due time.Time) (bide.Message, error) {
	m := bide.Message{ID: id, Key: t.group, Body: t.payload, Due: due, Headers: t.headers}
	if m.Headers == nil {
		m.Headers = map[string]string{}
	}
	m.Headers[HeaderType] = t.kind
	if t.retried > 0 {
		m.Headers[HeaderRetried] = strconv.FormatInt(t.retried, 10)
	}
	m.MaxAttempts = int(max(0, min(max(0, t.retry)-max(0, t.retried), storage.MaxAttempts-1)) + 1)
	if t.deadline == 0 {
		return m, nil
	}
	from := time.Now()
	if due.After(from) {
		from = due
	}
	deadline := time.Unix(min(t.deadline, from.Add(storage.MaxDelay).Unix()), 0) // no expiry is further away
	if m.ExpireIn = deadline.Sub(from); m.ExpireIn <= 0 {
		return m, fmt.Errorf("%w: its deadline was %s", bide.ErrExpired, deadline.UTC().Format(time.RFC3339))
	}
	return m, nil
}

// removeTask removes a task that is as it was read.
//
// KEYS: set or list of ids, task, notes, uniqueness lock if it has one. ARGV: id, SHA-1 of the task.
// Returns a removal.
var removeTask = rueidis.NewLuaScript(`
local message = redis.call("HGET", KEYS[2], "msg")
if message and redis.sha1hex(message) ~= ARGV[2] then return 2 end
local found
if redis.call("TYPE", KEYS[1]).ok == "list" then
  found = redis.call("LREM", KEYS[1], -1, ARGV[1])
else
  found = redis.call("ZREM", KEYS[1], ARGV[1])
end
if found == 0 then return 2 end
redis.call("DEL", KEYS[2])
redis.call("HDEL", KEYS[3], ARGV[1])
if KEYS[4] and redis.call("GET", KEYS[4]) == ARGV[1] then redis.call("DEL", KEYS[4]) end
return 1`)

func (a *Asynq) remove(ctx context.Context, n *notes, entries []Entry) ([]removal, error) {
	calls := make([]rueidis.LuaExec, len(entries))
	for i, e := range entries {
		keys := []string{e.origin, a.name("t:" + e.value), n.hash}
		if e.unique != "" {
			keys = append(keys, e.unique)
		}
		calls[i] = rueidis.LuaExec{Keys: keys, Args: []string{e.value, e.body}}
	}
	done := make([]removal, len(entries))
	for i, r := range removeTask.ExecMulti(ctx, a.Client, calls...) {
		code, err := r.AsInt64()
		if err != nil {
			return nil, unavailable("remove asynq's tasks", err)
		}
		if done[i] = removal(code); done[i] == removed && entries[i].origin == a.name("pending") {
			a.gone++
		}
	}
	return done, nil
}
