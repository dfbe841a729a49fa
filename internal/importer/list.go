// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"context"
	"iter"
	"slices"
	"strconv"

	"github.com/redis/rueidis"
)

// List is a list that producers push to at one end and consumers pop from at the other. Its messages
// are due at once, in its order. Equal elements are messages each, unless they are ids.
type List struct {
	Client rueidis.Client
	Key    string
	Right  bool   // consumers pop from the right
	Bodies string // hash of the bodies by element, which are ids then; "" is none
	IDs    bool   // elements are ids, and bodies too if there is no hash of them

	gone int // elements of the batch under way that were removed
}

func (l *List) key() string { return l.Key }

func (l *List) total(ctx context.Context) (int64, error) {
	n, err := l.Client.Do(ctx, l.Client.B().Llen().Key(l.Key).Build()).AsInt64()
	if err != nil {
		return 0, unavailable("count "+l.Key, err)
	}
	return n, nil
}

func (l *List) aside(context.Context) ([]string, error) { return nil, nil }

// elements reads a list from the end that is consumed. What was read and is still there is passed
// over; gone says how much of a batch was removed, after it was used.
func elements(ctx context.Context, client rueidis.Client, key string, right bool, size int, gone func() int) iter.Seq2[[]string, error] {
	return func(yield func([]string, error) bool) {
		for offset := 0; ; {
			first, last := offset, offset+size-1
			if right {
				first, last = -offset-size, -offset-1
			}
			values, err := client.Do(ctx, client.B().Lrange().Key(key).Start(int64(first)).Stop(int64(last)).Build()).AsStrSlice()
			if err != nil {
				yield(nil, unavailable("read "+key, err))
				return
			}
			if right {
				slices.Reverse(values)
			}
			if len(values) == 0 || !yield(values, nil) {
				return
			}
			offset = max(0, offset+len(values)-gone())
		}
	}
}

func (l *List) batches(ctx context.Context, n *notes, size int) iter.Seq2[[]Entry, error] {
	return func(yield func([]Entry, error) bool) {
		numbers := map[string]int{}
		for values, err := range elements(ctx, l.Client, l.Key, l.Right, size, func() int { return l.gone }) {
			l.gone = 0
			var entries []Entry
			if err == nil {
				entries, err = l.entries(ctx, n, numbers, values)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(entries, nil) {
				return
			}
		}
	}
}

// entries makes messages of elements. The id of an element that has none is a digest of its content,
// and a number among those that were ever equal: numbers has the last one of each digest.
func (l *List) entries(ctx context.Context, n *notes, numbers map[string]int, values []string) ([]Entry, error) {
	entries := make([]Entry, len(values))
	for i, v := range values {
		entries[i] = Entry{Name: v, value: v}
		entries[i].Message.ID, entries[i].Message.Body = v, []byte(v)
	}
	if !l.IDs && l.Bodies == "" {
		if err := number(ctx, n, numbers, entries); err != nil {
			return nil, err
		}
	}
	if err := bodies(ctx, l.Client, l.Bodies, entries); err != nil {
		return nil, err
	}
	for i := range entries {
		seal(&entries[i])
	}
	return entries, nil
}

// number gives equal elements different ids. The notes count those that were removed, so that their
// numbers are not given again.
func number(ctx context.Context, n *notes, numbers map[string]int, entries []Entry) error {
	var unseen []string
	for i := range entries {
		digest := idOf("list", entries[i].value)
		entries[i].Message.ID, entries[i].number = digest, "\x01"+digest
		if _, seen := numbers[digest]; !seen {
			numbers[digest] = 0
			unseen = append(unseen, digest)
		}
	}
	fields := make([]string, len(unseen))
	for i, digest := range unseen {
		fields[i] = "\x01" + digest
	}
	counts, err := n.fields(ctx, fields)
	if err != nil {
		return err
	}
	for i, digest := range unseen {
		numbers[digest], _ = strconv.Atoi(counts[i]) // none was removed, then
	}
	for i := range entries {
		m := &entries[i].Message
		numbers[m.ID]++
		m.ID += "-" + strconv.Itoa(numbers[m.ID])
	}
	return nil
}

// removeElements removes elements, and all equal ones if they are ids.
//
// KEYS: list, notes, hash of bodies if there is one. ARGV: 1 to look from the left and -1 from the
// right; element, id, field of its number or "", SHA-1 of the body, of each entry. Returns how many
// elements each removed.
var removeElements = rueidis.NewLuaScript(`
local done = {}
for i = 2, #ARGV, 4 do
  local value, number = ARGV[i], ARGV[i + 2]
  local n
  if number ~= "" then
    n = redis.call("LREM", KEYS[1], ARGV[1], value)
    redis.call("HINCRBY", KEYS[2], number, 1)
    redis.call("HDEL", KEYS[2], ARGV[i + 1])
  else
    local body = KEYS[3] and redis.call("HGET", KEYS[3], value)
    if not KEYS[3] or body and redis.sha1hex(body) == ARGV[i + 3] then
      n = redis.call("LREM", KEYS[1], 0, value)
      if KEYS[3] then redis.call("HDEL", KEYS[3], value) end
      redis.call("HDEL", KEYS[2], ARGV[i + 1])
    else
      n = -1
    end
  end
  done[#done + 1] = n
end
return done`)

func (l *List) remove(ctx context.Context, n *notes, entries []Entry) ([]removal, error) {
	args := []string{"1"}
	if l.Right {
		args[0] = "-1"
	}
	for _, e := range entries {
		args = append(args, e.value, e.Message.ID, e.number, e.body)
	}
	counts, err := removeElements.Exec(ctx, l.Client, removeKeys(l.Key, n, l.Bodies), args).AsIntSlice()
	if err != nil {
		return nil, unavailable("remove from "+l.Key, err)
	}
	done := make([]removal, len(counts))
	for i, c := range counts {
		switch {
		case c < 0:
			done[i] = changed
		case c > 0:
			done[i] = removed
			l.gone += int(c)
		}
	}
	return done, nil
}
