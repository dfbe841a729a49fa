// SPDX-License-Identifier: Apache-2.0

package importer_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/internal/importer"
	"github.com/bidemq/bide/internal/redisconn"
	"github.com/bidemq/bide/internal/redistest"
	"github.com/bidemq/bide/memstore"
	"github.com/bidemq/bide/storage"
)

const queue = "q"

// target is an engine that can be told to die, as a process does: before a call or after it.
type target struct {
	storage.Engine
	client *bide.Client
	before bool
	after  bool
}

var errDied = errors.New("died")

func newTarget(t *testing.T) *target {
	t.Helper()
	e := &target{Engine: memstore.New(memstore.Options{})}
	e.client = bide.NewClient(e, bide.ClientConfig{RepeatFor: -1, Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(func() { _ = e.client.Close(context.Background()) })
	return e
}

func (e *target) Enqueue(ctx context.Context, now time.Time, queue string, recs []storage.Record) ([]storage.EnqueueResult, error) {
	if e.before {
		return nil, errDied
	}
	results, err := e.Engine.Enqueue(ctx, now, queue, recs)
	if e.after {
		return nil, errDied
	}
	return results, err
}

// handle claims what is ready and settles it, and returns what it got.
func (e *target) handle(t *testing.T, v storage.Verdict) (bodies []string) {
	t.Helper()
	for {
		got, err := e.Claim(t.Context(), time.Time{}, storage.Claim{Queue: queue, Limit: 100, Lease: time.Minute})
		assert.NoError(t, err)
		if len(got.Records) == 0 {
			return bodies
		}
		for _, r := range got.Records {
			bodies = append(bodies, string(r.Body))
			_, err := e.Settle(t.Context(), time.Time{}, []storage.Settlement{{Receipt: r.Receipt(queue), Verdict: v}})
			assert.NoError(t, err)
		}
	}
}

func connect(t *testing.T, url string) rueidis.Client {
	t.Helper()
	parsed, err := redisconn.Parse(url)
	assert.NoError(t, err)
	client, err := redisconn.Dial(t.Context(), parsed, nil)
	assert.NoError(t, err)
	t.Cleanup(client.Close)
	return client
}

// key is one that no other test uses.
func key(t *testing.T) string {
	t.Helper()
	return strings.NewReplacer("/", ":", " ", "").Replace(t.Name())
}

func run(t *testing.T, s importer.Source, c importer.Config, e *target) (importer.Report, error) {
	t.Helper()
	c.Client, c.Target, c.Queue = e.client, "target", queue
	c.Each = func(importer.Entry, importer.Action, error) {}
	c.Total = func(int64) {}
	c.Remark = func(string) {}
	return importer.Run(t.Context(), s, c)
}

func zadd(t *testing.T, client rueidis.Client, key string, score float64, members ...string) {
	t.Helper()
	for _, m := range members {
		assert.NoError(t, client.Do(t.Context(), client.B().Zadd().Key(key).ScoreMember().ScoreMember(score, m).Build()).Error())
	}
}

// However an import dies and whatever happens to its messages meanwhile, the next one brings what is
// missing and nothing twice.
func TestDeathBesideAnEnqueue(t *testing.T) {
	t.Parallel()
	client := connect(t, redistest.Shared(t).URL())
	for _, remove := range []bool{false, true} {
		for _, after := range []bool{false, true} {
			for name, meanwhile := range map[string]func(t *testing.T, e *target){
				"nothing": func(*testing.T, *target) {},
				"handled": func(t *testing.T, e *target) { e.handle(t, storage.Ack) },
				"buried":  func(t *testing.T, e *target) { e.handle(t, storage.Bury) },
			} {
				t.Run(fmt.Sprintf("after=%t,%s,remove=%t", after, name, remove), func(t *testing.T) {
					e := newTarget(t)
					zadd(t, client, key(t), 1_700_000_000, "a", "b", "c")
					source := &importer.ZSet{Client: client, Key: key(t), Score: importer.Auto}
					config := importer.Config{Notes: client, Remove: remove}
					e.before, e.after = !after, after
					_, err := run(t, source, config, e)
					assert.ErrorIs(t, err, errDied)
					e.before, e.after = false, false
					meanwhile(t, e)
					for range 2 {
						_, err = run(t, source, config, e)
						assert.NoError(t, err)
						e.handle(t, storage.Ack)
					}
					st, err := e.Stats(t.Context(), time.Time{}, queue)
					assert.NoError(t, err)
					assert.Equal(t, st.Total.Enqueued, int64(3))
					assert.Equal(t, st.Total.Claimed, int64(3))
				})
			}
		}
	}
}

// A change of the source is brought whatever became of the message, and again wins over a death.
func TestChangedEntries(t *testing.T) {
	t.Parallel()
	client := connect(t, redistest.Shared(t).URL())
	for _, state := range []string{"waiting", "running", "handled", "buried", "in doubt"} {
		t.Run(state, func(t *testing.T) {
			e, hash := newTarget(t), key(t)+":bodies"
			set := func(body string) {
				assert.NoError(t, client.Do(t.Context(), client.B().Hset().Key(hash).FieldValue().FieldValue("a", body).Build()).Error())
			}
			zadd(t, client, key(t), 1_700_000_000, "a")
			set("old")
			source := &importer.ZSet{Client: client, Key: key(t), Bodies: hash, Score: importer.Seconds}
			config := importer.Config{Notes: client}
			e.after = state == "in doubt"
			_, err := run(t, source, config, e)
			assert.Equal(t, err != nil, e.after)
			e.after = false
			var got storage.Claimed
			switch state {
			case "running":
				got, err = e.Claim(t.Context(), time.Time{}, storage.Claim{Queue: queue, Limit: 1, Lease: time.Minute})
				assert.NoError(t, err)
			case "handled":
				assert.Equal(t, e.handle(t, storage.Ack), []string{"old"})
			case "buried":
				assert.Equal(t, e.handle(t, storage.Bury), []string{"old"})
			}
			set("new")
			r, err := run(t, source, config, e)
			assert.NoError(t, err)
			assert.Equal(t, r, importer.Report{Updated: 1})
			r, err = run(t, source, config, e)
			assert.NoError(t, err)
			assert.Equal(t, r, importer.Report{Known: 1})
			for _, rec := range got.Records {
				_, err = e.Settle(t.Context(), time.Time{}, []storage.Settlement{{Receipt: rec.Receipt(queue), Verdict: storage.Ack}})
				assert.NoError(t, err)
			}
			assert.Equal(t, e.handle(t, storage.Ack), []string{"new"})
		})
	}
}

// An update that was in doubt is made.
func TestDeathBesideAnUpdate(t *testing.T) {
	t.Parallel()
	client := connect(t, redistest.Shared(t).URL())
	for _, after := range []bool{false, true} {
		t.Run(fmt.Sprintf("after=%t", after), func(t *testing.T) {
			e := newTarget(t)
			source := &importer.ZSet{Client: client, Key: key(t), IDs: true, Score: importer.Seconds}
			zadd(t, client, key(t), 4_102_444_800, "a")
			_, err := run(t, source, importer.Config{Notes: client}, e)
			assert.NoError(t, err)
			zadd(t, client, key(t), 4_102_444_900, "a")
			e.before, e.after = !after, after
			_, err = run(t, source, importer.Config{Notes: client}, e)
			assert.ErrorIs(t, err, errDied)
			e.before, e.after = false, false
			_, err = run(t, source, importer.Config{Notes: client}, e)
			assert.NoError(t, err)
			rec, err := e.Get(t.Context(), time.Time{}, queue, "a")
			assert.NoError(t, err)
			assert.Equal(t, rec.Due.Unix(), int64(4_102_444_900))
			st, err := e.Stats(t.Context(), time.Time{}, queue)
			assert.NoError(t, err)
			assert.Equal(t, st.Total.Replaced, int64(1))
		})
	}
}

// What is pushed again between reading and removing stays and comes with the next run, by the same
// id if it has one.
func TestRenewedEntriesStay(t *testing.T) {
	t.Parallel()
	client := connect(t, redistest.Shared(t).URL())
	e := newTarget(t)
	zadd(t, client, key(t), 1_700_000_000, "a", "b")
	source := &importer.ZSet{Client: client, Key: key(t), IDs: true, Score: importer.Seconds}
	config := importer.Config{
		Notes: client, Remove: true, Client: e.client, Queue: queue,
		Total: func(int64) {}, Remark: func(string) {},
		Each: func(entry importer.Entry, a importer.Action, _ error) {
			if entry.Name == "a" && a == importer.Import { // enqueued and not removed yet
				zadd(t, client, key(t), 1_700_000_001, "a")
			}
		},
	}
	r, err := importer.Run(t.Context(), source, config)
	assert.NoError(t, err)
	assert.Equal(t, r, importer.Report{Imported: 2, Removed: 1, Changed: 1})
	assert.Equal(t, e.handle(t, storage.Ack), []string{"a", "b"})
	r, err = importer.Run(t.Context(), source, config)
	assert.NoError(t, err)
	assert.Equal(t, r, importer.Report{Updated: 1, Removed: 1})
	assert.Equal(t, e.handle(t, storage.Ack), []string{"a"})

	zadd(t, client, key(t), 1_700_000_001, "a") // the very same, after it has left: it is a new one
	r, err = importer.Run(t.Context(), source, config)
	assert.NoError(t, err)
	assert.Equal(t, r.Removed, 1)
	assert.Equal(t, e.handle(t, storage.Ack), []string{"a"})
}

// The same goes for a body that is renewed while its score stays, and for one of a list.
func TestRenewedBodiesStay(t *testing.T) {
	t.Parallel()
	client := connect(t, redistest.Shared(t).URL())
	for _, kind := range []string{"zset", "list"} {
		t.Run(kind, func(t *testing.T) {
			e, hash := newTarget(t), key(t)+":bodies"
			set := func(body string) {
				assert.NoError(t, client.Do(t.Context(), client.B().Hset().Key(hash).FieldValue().FieldValue("a", body).Build()).Error())
			}
			set("old")
			var source importer.Source = &importer.ZSet{Client: client, Key: key(t), Bodies: hash, Score: importer.Seconds}
			if kind == "list" {
				source = &importer.List{Client: client, Key: key(t), Bodies: hash}
				assert.NoError(t, client.Do(t.Context(), client.B().Lpush().Key(key(t)).Element("a").Build()).Error())
			} else {
				zadd(t, client, key(t), 1_700_000_000, "a")
			}
			renew := true
			config := importer.Config{
				Notes: client, Remove: true, Client: e.client, Queue: queue,
				Total: func(int64) {}, Remark: func(string) {},
				Each: func(importer.Entry, importer.Action, error) {
					if renew {
						set("new")
					}
				},
			}
			r, err := importer.Run(t.Context(), source, config)
			assert.NoError(t, err)
			assert.Equal(t, r, importer.Report{Imported: 1, Changed: 1})
			assert.Equal(t, e.handle(t, storage.Ack), []string{"old"})
			renew = false
			r, err = importer.Run(t.Context(), source, config)
			assert.NoError(t, err)
			assert.Equal(t, r, importer.Report{Updated: 1, Removed: 1})
			assert.Equal(t, e.handle(t, storage.Ack), []string{"new"})
			left, err := client.Do(t.Context(), client.B().Exists().Key(key(t), hash).Build()).AsInt64()
			assert.NoError(t, err)
			assert.Equal(t, left, int64(0))
		})
	}
}

// A message that somebody else has enqueued under the id of an entry is replaced, or kept if asked.
func TestMessagesOfOthers(t *testing.T) {
	t.Parallel()
	client := connect(t, redistest.Shared(t).URL())
	for _, keep := range []bool{false, true} {
		for _, died := range []bool{false, true} {
			t.Run(fmt.Sprintf("keep=%t,died=%t", keep, died), func(t *testing.T) {
				e := newTarget(t)
				_, err := e.client.Enqueue(t.Context(), queue, bide.Message{ID: "a", Body: []byte("theirs")})
				assert.NoError(t, err)
				zadd(t, client, key(t), 1_700_000_000, "a")
				source := &importer.ZSet{Client: client, Key: key(t), IDs: true, Score: importer.Auto}
				if e.before = died; died {
					_, err = run(t, source, importer.Config{Notes: client, Keep: keep}, e)
					assert.ErrorIs(t, err, errDied)
					e.before = false
				}
				_, err = run(t, source, importer.Config{Notes: client, Keep: keep}, e)
				assert.NoError(t, err)
				assert.Equal(t, e.handle(t, storage.Ack), []string{map[bool]string{false: "a", true: "theirs"}[keep]})
			})
		}
	}
}

func TestImportFromACluster(t *testing.T) {
	t.Parallel()
	client := connect(t, redistest.StartCluster(t).URL())
	e := newTarget(t)
	zadd(t, client, "orders", 1_700_000_000, "a", "b")
	_, err := run(t, &importer.ZSet{Client: client, Key: "orders", Score: importer.Auto}, importer.Config{Notes: client, Remove: true}, e)
	assert.NoError(t, err)
	assert.Equal(t, e.handle(t, storage.Ack), []string{"a", "b"})

	elsewhere := &importer.ZSet{Client: client, Key: "form:due", Bodies: "form:content", Score: importer.Auto}
	_, err = run(t, elsewhere, importer.Config{Notes: client, Remove: true}, e)
	assert.ErrorIs(t, err, storage.ErrInvalid)
	zadd(t, client, "form:due", 1_700_000_000, "1")
	assert.NoError(t, client.Do(t.Context(), client.B().Hset().Key("form:content").FieldValue().FieldValue("1", "draft").Build()).Error())
	_, err = run(t, elsewhere, importer.Config{Notes: client}, e)
	assert.NoError(t, err)
	assert.Equal(t, e.handle(t, storage.Ack), []string{"draft"})
}
