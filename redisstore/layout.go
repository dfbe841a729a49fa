// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/bidemq/bide/storage"
)

// storedFormat is FORMAT of state.lua.
const storedFormat = "4"

// maxCounts bounds the counts of shards that a queue has records from at a time.
const maxCounts = 4

// shard is where a call goes: a queue, or one of the queues that a spread queue consists of.
type shard struct {
	name   string // in keys and notices: that of the queue, with "#" and a number behind it from the second on
	layout string // that the call is made for, as it stands in meta; "" if the queue is not spread
	asks   bool   // only what is in use here is stored here, the rest may live elsewhere
	stamps bool   // the layout is compared though it is none
	brief  bool   // a server that refuses is not asked again: there are other shards
}

// mark puts the layout behind the instant of a call, see state.lua.
func (at *shard) mark(now string) string {
	if at.layout == "" && !at.stamps {
		return now
	}
	if now == "" && !at.asks {
		return "              " + at.layout
	}
	mode := " "
	if at.asks {
		mode = "?"
	}
	return fmt.Sprintf("%13s", now) + mode + at.layout
}

// shardName is the name of a shard of a queue. No queue has it.
func shardName(queue string, i int) string {
	if i == 0 {
		return queue
	}
	return queue + "#" + strconv.Itoa(i)
}

// cutShard is the reverse of shardName.
func cutShard(name string) (queue string, i int) {
	queue, number, ok := strings.Cut(name, "#")
	if ok {
		i, _ = strconv.Atoi(number) // which shardName has written
	}
	return queue, i
}

// layout says over how many shards a queue is spread. It does not change.
type layout struct {
	text    string  // as it stands in meta, "" of a queue that is not spread
	stored  string  // the same, and the format of a queue that is not spread; "" if there is no queue
	version int64   // grows with every change, 0 of a queue that is not spread
	counts  []int   // of shards, oldest first: records that were stored under an older one may still be where it wants them
	shards  []shard // all that may hold anything
}

func newLayout(queue string, version int64, counts []int) *layout {
	l := &layout{version: version, counts: counts}
	if version > 0 {
		texts := make([]string, len(counts))
		for i, n := range counts {
			texts[i] = strconv.Itoa(n)
		}
		l.text = storedFormat + " " + decimal(version) + " " + strings.Join(texts, ",")
		l.stored = l.text
	}
	for i := range slices.Max(counts) {
		l.shards = append(l.shards, shard{name: shardName(queue, i), layout: l.text})
	}
	return l
}

// parseLayout reads what stands in meta. Nothing there is a queue that is not spread.
func parseLayout(queue, text string) (*layout, error) {
	words := strings.Fields(text)
	if len(words) < 2 {
		l := newLayout(queue, 0, []int{1})
		l.stored = text
		return l, nil
	}
	bad := fmt.Errorf("redisstore: queue %q: %w: layout %q", queue, storage.ErrFormat, text)
	version, err := strconv.ParseInt(words[1], 10, 64)
	if err != nil || len(words) != 3 || version < 1 {
		return nil, bad
	}
	var counts []int
	for word := range strings.SplitSeq(words[2], ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 || n > storage.MaxShards || len(counts) == maxCounts {
			return nil, bad
		}
		counts = append(counts, n)
	}
	return newLayout(queue, version, counts), nil
}

// newest is the count that new records are placed by.
func (l *layout) newest() int { return l.counts[len(l.counts)-1] }

// configured is the count as a configuration has it.
func (l *layout) configured() int {
	if n := l.newest(); n > 1 {
		return n
	}
	return 0
}

// home is the shard that a name belongs to, of so many. It is the same in all processes for ever.
func home(name string, of int) int {
	h := uint64(14695981039346656037) // FNV-1a
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * 1099511628211
	}
	return int((h ^ h>>32) % uint64(of))
}

// namesHome returns what decides where a record lives: its key, or its id if it has none.
func namesHome(id, key string) string {
	if key != "" {
		return key
	}
	return id
}

// home returns the shard where a name is asked for, after so many others, and whether it is the last,
// where the name lives if it does not live in those before. Oldest first, each once.
func (l *layout) home(name string, after int) (at int, last bool) {
	end := len(l.counts) - 1
	final := home(name, l.counts[end])
	for i, n := range l.counts[:end] {
		h := home(name, n)
		if h == final || slices.ContainsFunc(l.counts[:i], func(m int) bool { return home(name, m) == h }) {
			continue
		}
		if after == 0 {
			return h, false
		}
		after--
	}
	return final, true
}

// homes returns every shard that a name may live in, the likeliest first.
func (l *layout) homes(name string) []int {
	var all []int
	for _, n := range slices.Backward(l.counts) {
		if h := home(name, n); !slices.Contains(all, h) {
			all = append(all, h)
		}
	}
	return all
}

// with returns the counts when new records are to be placed by n.
func (l *layout) with(n int) []int {
	counts := slices.DeleteFunc(slices.Clone(l.counts), func(m int) bool { return m == n })
	return append(counts, n)
}

// next is the layout of a queue whose configuration changes. Every change of a spread queue has one of its
// own, so that no shard does anything by another configuration than the caller's.
func (l *layout) next(queue string, was, to *storage.QueueConfig) (*layout, error) {
	if was.Ordered != to.Ordered && len(l.shards) > 1 {
		return nil, fmt.Errorf("redisstore: %w: queue %q is spread over %d shards, the order of keys cannot change", storage.ErrConflict, queue, len(l.shards))
	}
	n := max(to.Shards, 1)
	counts := l.with(n)
	if l.stored == "" { // nothing lies anywhere
		counts = []int{n}
	}
	if len(counts) > maxCounts {
		return nil, fmt.Errorf("redisstore: %w: queue %q has yet to move from %v shards", storage.ErrConflict, queue, l.counts)
	}
	return newLayout(queue, l.version+1, counts), nil
}

// shardsOf returns the shards that may have something of a scope.
func (l *layout) shardsOf(scope *storage.Scope) []int {
	var some []int
	if len(scope.Keys) > 0 && !slices.Contains(scope.Keys, "") {
		for _, key := range scope.Keys {
			some = append(some, l.homes(key)...)
		}
		slices.Sort(some)
		return slices.Compact(some)
	}
	for i := range l.shards {
		some = append(some, i)
	}
	return some
}

// each calls do for every shard, all at once, and returns the first error by shard.
func (l *layout) each(do func(i int, at shard) error) error {
	if len(l.shards) == 1 {
		return do(0, l.shards[0])
	}
	errs := make([]error, len(l.shards))
	var all sync.WaitGroup
	for i, at := range l.shards {
		all.Go(func() { errs[i] = do(i, at) })
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// localSeq is the reverse of spreadSeq.
func (l *layout) localSeq(seq int64) (int64, int) {
	if l.version == 0 {
		return seq, 0
	}
	return seq / storage.MaxShards, int(seq % storage.MaxShards)
}

// spreadSeq is a sequence that no two records of a spread queue share. Those of a queue that is not are
// what its only shard says.
func (l *layout) spreadSeq(seq int64, i int) int64 {
	if l.version == 0 || seq == 0 {
		return seq
	}
	return seq*storage.MaxShards + int64(i)
}
