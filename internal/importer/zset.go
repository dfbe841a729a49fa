// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"context"
	"fmt"
	"iter"
	"strconv"

	"github.com/redis/rueidis"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/storage"
)

// ZSet is a sorted set whose scores are due times.
type ZSet struct {
	Client rueidis.Client
	Key    string
	Bodies string // hash of the bodies by member, which are ids then; "" is none
	IDs    bool   // members are ids, and bodies too if there is no hash of them
	Score  Unit
}

func (z *ZSet) key() string { return z.Key }

func (z *ZSet) total(ctx context.Context) (int64, error) {
	n, err := z.Client.Do(ctx, z.Client.B().Zcard().Key(z.Key).Build()).AsInt64()
	if err != nil {
		return 0, unavailable("count "+z.Key, err)
	}
	return n, nil
}

func (z *ZSet) aside(context.Context) ([]string, error) { return nil, nil }

// batches scans the set, since ranges by rank or score pass over what moves meanwhile.
func (z *ZSet) batches(ctx context.Context, _ *notes, size int) iter.Seq2[[]Entry, error] {
	return func(yield func([]Entry, error) bool) {
		unit, err := z.unit(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		for cursor := uint64(0); ; {
			page, err := z.Client.Do(ctx, z.Client.B().Zscan().Key(z.Key).Cursor(cursor).Count(int64(size)).Build()).AsScanEntry()
			if err != nil {
				yield(nil, unavailable("read "+z.Key, err))
				return
			}
			var entries []Entry
			for i := 0; i+1 < len(page.Elements); i += 2 {
				score, err := strconv.ParseFloat(page.Elements[i+1], 64)
				if err != nil {
					yield(nil, fmt.Errorf("%w: score %q of %s", storage.ErrFormat, page.Elements[i+1], z.Key))
					return
				}
				entries = append(entries, Entry{Name: page.Elements[i], value: page.Elements[i], score: score})
			}
			if err := z.fill(ctx, unit, entries); err != nil {
				yield(nil, err)
				return
			}
			for len(entries) > 0 { // a small set is answered in one piece
				n := min(size, len(entries))
				if !yield(entries[:n], nil) {
					return
				}
				entries = entries[n:]
			}
			if cursor = page.Cursor; cursor == 0 {
				return
			}
		}
	}
}

// unit finds out what the scores are.
func (z *ZSet) unit(ctx context.Context) (Unit, error) {
	if z.Score != Auto {
		return z.Score, nil
	}
	var ends []float64
	for _, r := range z.Client.DoMulti(ctx,
		z.Client.B().Zrange().Key(z.Key).Min("0").Max("0").Withscores().Build(),
		z.Client.B().Zrange().Key(z.Key).Min("-1").Max("-1").Withscores().Build(),
	) {
		scores, err := r.AsZScores()
		if err != nil {
			return "", unavailable("read "+z.Key, err)
		}
		if len(scores) == 0 {
			return Seconds, nil
		}
		ends = append(ends, scores[0].Score)
	}
	return guess(ends[0], ends[1])
}

// fill makes messages of what was read.
func (z *ZSet) fill(ctx context.Context, unit Unit, entries []Entry) error {
	for i := range entries {
		e := &entries[i]
		e.Message.ID, e.Message.Body = e.value, []byte(e.value)
		if !z.IDs && z.Bodies == "" {
			e.Message.ID = idOf("zset", e.value)
		}
		e.Message.Due, e.Err = unit.instant(e.score)
	}
	if err := bodies(ctx, z.Client, z.Bodies, entries); err != nil {
		return err
	}
	for i := range entries {
		seal(&entries[i])
	}
	return nil
}

// bodies reads the bodies of entries that are ids. One without a body cannot be imported.
func bodies(ctx context.Context, client rueidis.Client, hash string, entries []Entry) error {
	if hash == "" || len(entries) == 0 {
		return nil
	}
	ids := make([]string, len(entries))
	for i, e := range entries {
		ids[i] = e.value
	}
	found, err := client.Do(ctx, client.B().Hmget().Key(hash).Field(ids...).Build()).ToArray()
	if err != nil {
		return unavailable("read "+hash, err)
	}
	for i, m := range found {
		body, err := m.ToString()
		switch {
		case rueidis.IsRedisNil(err):
			entries[i].Err = fmt.Errorf("%w: %s has no body of this id", bide.ErrNotFound, hash)
		case err != nil:
			return unavailable("read "+hash, err)
		}
		entries[i].Message.Body, entries[i].body = []byte(body), sha(body)
	}
	return nil
}

// seal takes the print of a message that is complete.
func seal(e *Entry) {
	due := int64(0)
	if !e.Message.Due.IsZero() {
		due = storage.DueMilli(e.Message.Due)
	}
	e.print = printOf(due, e.Message.Body, e.Message.Headers)
}

// removeMembers removes members whose score, and whose body if there are bodies, is what was read.
//
// KEYS: set, notes, hash of bodies if there is one. ARGV: member, score, id, SHA-1 of the body, of
// each entry. Returns a removal for each.
var removeMembers = rueidis.NewLuaScript(`
local done = {}
for i = 1, #ARGV, 4 do
  local member = ARGV[i]
  local score = redis.call("ZSCORE", KEYS[1], member)
  local result = 0
  if score then
    local same = tonumber(score) == tonumber(ARGV[i + 1])
    if same and KEYS[3] then
      local body = redis.call("HGET", KEYS[3], member)
      same = body and redis.sha1hex(body) == ARGV[i + 3]
    end
    result = same and 1 or 2
  end
  if result == 1 then
    redis.call("ZREM", KEYS[1], member)
    if KEYS[3] then redis.call("HDEL", KEYS[3], member) end
  end
  if result ~= 2 then redis.call("HDEL", KEYS[2], ARGV[i + 2]) end
  done[#done + 1] = result
end
return done`)

func (z *ZSet) remove(ctx context.Context, n *notes, entries []Entry) ([]removal, error) {
	var args []string
	for _, e := range entries {
		args = append(args, e.value, strconv.FormatFloat(e.score, 'g', 17, 64), e.Message.ID, e.body)
	}
	return removals(removeMembers.Exec(ctx, z.Client, removeKeys(z.Key, n, z.Bodies), args))
}

// removeKeys are the keys that removing an entry changes.
func removeKeys(key string, n *notes, hash string) []string {
	if hash == "" {
		return []string{key, n.hash}
	}
	return []string{key, n.hash, hash}
}

func removals(r rueidis.RedisResult) ([]removal, error) {
	codes, err := r.AsIntSlice()
	if err != nil {
		return nil, unavailable("remove from the source", err)
	}
	done := make([]removal, len(codes))
	for i, c := range codes {
		done[i] = removal(c)
	}
	return done, nil
}
