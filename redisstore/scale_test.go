// SPDX-License-Identifier: Apache-2.0

package redisstore_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/internal/redisconn"
	"github.com/bidemq/bide/storage"
)

// scaleVariable says how many delayed messages TestScale has, and compares CPU time as well.
const scaleVariable = "BIDE_SCALE"

// What a call costs does not grow with the number of waiting messages: with a hundred times as many,
// no call runs more than twice the commands. The long form wants the same of the server's CPU time, with a
// thousand times as many, of calls for one record; of what a batch costs the caches of the processor are
// too large a part.
func TestScale(t *testing.T) {
	few, many, long := 1_000, 100_000, false
	if n, err := strconv.Atoi(os.Getenv(scaleVariable)); err == nil {
		few, many, long = 10_000, n, true
	} else {
		t.Parallel()
	}
	for _, kind := range []struct {
		name  string
		every int // records a key, 0 is no keys
		part  int // of the records, as keys cost time
	}{
		{"plain", 0, 1},
		{"keyed", 10, 5},
	} {
		t.Run(kind.name, func(t *testing.T) {
			n, rounds := many/kind.part, 3
			pair := [2]*scaled{newScaled(t, few, kind.every), newScaled(t, n, kind.every)}
			if long {
				rounds = 15
				for _, s := range pair {
					s.settleTables()
				}
			}
			for round := range rounds {
				for i := range pair {
					pair[(round+i)%2].round()
				}
			}
			for _, op := range pair[0].order {
				a, b := pair[0].ops[op], pair[1].ops[op]
				t.Logf("%-12s %6.1f commands %8.1f µs with %d, %6.1f commands %8.1f µs with %d, %.2f times",
					op, a.most, a.median(), few, b.most, b.median(), n, b.median()/a.median())
				assert.True(t, b.most <= 2*a.most, op, "runs", b.most, "commands, with few messages", a.most)
				if hundred := strings.HasSuffix(op, "100"); long && !hundred && b.median() > 2*a.median() {
					t.Errorf("%s takes %.1f µs of the server, with few messages %.1f", op, b.median(), a.median())
				}
			}
			for _, s := range pair {
				s.steps()
			}
		})
	}
}

// scaled is a queue with many delayed records, on a server of its own.
type scaled struct {
	*bounded
	n     int
	every int
	burst time.Time // when every second record is due, all in the same millisecond; the others follow
	made  int
	due   *rand.Rand
	order []string
	ops   map[string]*spent
}

// spent is what a call has cost, round by round.
type spent struct {
	most float64   // commands a call
	cpu  []float64 // µs of the server a call
}

func (s *spent) median() float64 {
	slices.Sort(s.cpu)
	return s.cpu[len(s.cpu)/2]
}

func newScaled(t *testing.T, n, every int) *scaled {
	t.Helper()
	s := &scaled{
		bounded: newBounded(t, storage.ConfigEdit{}), n: n, every: every,
		burst: time.Now().Add(24 * time.Hour).Truncate(time.Millisecond),
		due:   rand.New(rand.NewPCG(1, uint64(n))), ops: map[string]*spent{},
	}
	empty, before := s.memory(), s.cpu()
	var fills sync.WaitGroup
	for part := range 2 {
		fills.Go(func() {
			recs := make([]storage.Record, storage.MaxBatch)
			due := rand.New(rand.NewPCG(2, uint64(part)))
			for from := part * len(recs); from < n; from += 2 * len(recs) {
				for i := range recs {
					recs[i] = s.record(fmt.Sprint("order ", from+i), from+i, due)
				}
				if _, err := s.Enqueue(t.Context(), time.Time{}, s.queue, recs); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	fills.Wait()
	assert.Equal(t, stats(t, s, s.queue).Delayed, int64(n))
	t.Logf("%d records: %.0f bytes and %.2f µs of the server each", n, (s.memory()-empty)/float64(n), (s.cpu()-before)/float64(n))
	return s
}

// settleTables lets Redis finish the doubling of its tables, which goes on by a step with each access and
// costs every one of them some cache misses until then: else 10^7 would be measured in the middle of it.
func (s *scaled) settleTables() {
	s.Helper()
	const step = `for _, key in ipairs(redis.call('KEYS', '*')) do
		local look = ({hash = 'HEXISTS', zset = 'ZSCORE'})[redis.call('TYPE', key).ok]
		for i = 1, look and 1e5 or 0 do redis.call(look, key, '') end
	end`
	before := s.cpu()
	for range 1 + 2*s.n/100_000 {
		s.server.Do(s, "EVAL", step, "0")
	}
	s.Logf("%d records: %.1f s to let the tables settle", s.n, (s.cpu()-before)/1e6)
}

// record is the i-th one of the queue, or one that could be.
func (s *scaled) record(id string, i int, due *rand.Rand) storage.Record {
	r := storage.Record{ID: id, Body: []byte("0123456789"), Due: s.burst}
	if i%2 == 1 {
		r.Due = s.someDue(due)
	}
	if s.every > 0 {
		r.Key = fmt.Sprint("customer ", i/s.every)
	}
	return r
}

func (s *scaled) someDue(due *rand.Rand) time.Time {
	return s.burst.Add(time.Duration(1+due.IntN(s.n)) * time.Millisecond)
}

// info is a number of INFO.
func (s *scaled) info(section string, names ...string) float64 {
	s.Helper()
	all, sum := redisconn.ParseInfo(s.server.Do(s, "INFO", section)), 0.0
	for _, name := range names {
		f, err := strconv.ParseFloat(all[name], 64)
		assert.NoError(s, err)
		sum += f
	}
	return sum
}

func (s *scaled) memory() float64 { return s.info("memory", "used_memory") }

// cpu is the time of the thread that runs commands, in microseconds.
func (s *scaled) cpu() float64 {
	return 1e6 * s.info("cpu", "used_cpu_user_main_thread", "used_cpu_sys_main_thread")
}

// measure does something so many times, and notes what it costs.
func (s *scaled) measure(op string, times int, do func(i int)) {
	s.Helper()
	if s.ops[op] == nil {
		s.ops[op] = &spent{}
		s.order = append(s.order, op)
	}
	ran, before := commands(s.T, s.server), s.cpu()
	for i := range times {
		do(i)
	}
	cpu := s.cpu() - before
	c := s.ops[op]
	c.cpu = append(c.cpu, cpu/float64(times))
	c.most = max(c.most, float64(commands(s.T, s.server)-ran)/float64(times))
}

// round makes every call some times, and leaves as many records as it found.
func (s *scaled) round() {
	s.Helper()
	const times, batches = 100, 5
	var ids []string
	fresh := func(n int, ready bool) []storage.Record {
		recs := make([]storage.Record, n)
		for i := range recs {
			s.made++
			recs[i] = s.record(fmt.Sprint("new ", s.made), 2*s.due.IntN(s.n/2)+1, s.due)
			if ready {
				recs[i].Due = time.Time{}
			} else {
				ids = append(ids, recs[i].ID)
			}
		}
		return recs
	}
	var held [][]storage.Record
	take := func(limit int) func(int) {
		return func(int) { held = append(held, s.take(storage.Claim{Limit: limit}).Records) }
	}
	ack := func(i int) { s.settle(storage.Ack, held[i]...) }
	some := func() string { return fmt.Sprint("order ", s.due.IntN(s.n)) }

	s.measure("enqueue", times, func(int) { enqueue(s, s.Store, s.queue, fresh(1, false)...) })
	s.measure("enqueue 100", batches, func(int) { enqueue(s, s.Store, s.queue, fresh(100, false)...) })
	s.measure("get", times, func(int) {
		_, err := s.Get(s.Context(), time.Time{}, s.queue, some())
		assert.NoError(s, err)
	})
	s.measure("reschedule", times, func(int) {
		_, err := s.Edit(s.Context(), time.Time{}, s.queue, some(), storage.Edit{Due: new(s.someDue(s.due))})
		assert.NoError(s, err)
	})
	s.due.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	s.measure("cancel", len(ids), func(i int) { assert.NoError(s, s.Cancel(s.Context(), time.Time{}, s.queue, ids[i], false)) })

	enqueue(s, s.Store, s.queue, fresh(times, true)...)
	s.measure("claim", times, take(1))
	s.measure("ack", times, ack)
	enqueue(s, s.Store, s.queue, fresh(100*batches, true)...)
	held = nil
	s.measure("claim 100", batches, take(100))
	s.measure("ack 100", batches, ack)

	list := func(f storage.Filter) {
		f.State, f.Limit = storage.Delayed, 100
		_, err := s.List(s.Context(), time.Time{}, s.queue, f)
		assert.NoError(s, err)
	}
	s.measure("list", times, func(int) { list(storage.Filter{From: s.someDue(s.due)}) })
	s.measure("list on", times, func(int) { list(storage.Filter{After: storage.Position{At: s.burst, Seq: int64(s.due.IntN(s.n))}}) })
	s.measure("stats", times, func(int) { assert.Equal(s, stats(s, s.Store, s.queue).Delayed, int64(s.n)) })
	if s.every > 0 {
		s.measure("keys", times, func(int) {
			_, err := s.Keys(s.Context(), time.Time{}, s.queue, storage.KeyFilter{By: storage.Largest, Limit: 100})
			assert.NoError(s, err)
		})
	}
}

// steps repairs and purges step by step: none is larger than its limit allows, whatever the queue holds.
// Of a long way it goes the first steps.
func (s *scaled) steps() {
	s.Helper()
	const limit, each, far = 1000, 12, 2000 // records a step, commands a record, steps
	step := func(do func() (more bool)) (most, steps int, cpu float64) {
		ran, before := commands(s.T, s.server), s.cpu()
		for more := true; more; steps++ {
			more = do()
			now := commands(s.T, s.server)
			most, ran = max(most, now-ran), now
		}
		return most, steps, s.cpu() - before
	}
	ask, checked, enough := storage.Repair{Limit: limit, DryRun: true}, 0, min(2*s.n, far*limit/2)
	most, steps, cpu := step(func() bool {
		r, err := s.Repair(s.Context(), time.Time{}, s.queue, ask)
		assert.NoError(s, err)
		assert.Equal(s, r.Fixes, nil)
		checked += r.Checked // nothing, while it looks for lost grants
		ask.After = r.Next
		return r.Next != "" && (checked < enough || s.n < far*limit)
	})
	s.Logf("repair of %d: %d steps, at most %d commands, %.2f ms of the server a step", s.n, steps, most, cpu/float64(steps)/1000)
	assert.True(s, checked >= enough, checked)
	assert.True(s, most <= each*limit, most)

	filter, purged := storage.Filter{State: storage.Delayed, Limit: limit}, 0
	most, steps, cpu = step(func() bool {
		b, err := s.Purge(s.Context(), time.Time{}, s.queue, filter)
		assert.NoError(s, err)
		purged += b.Count
		return b.More && purged < far*limit
	})
	s.Logf("purge of %d: %d steps, at most %d commands, %.2f ms of the server a step", s.n, steps, most, cpu/float64(steps)/1000)
	assert.Equal(s, purged, min(s.n, far*limit))
	assert.True(s, most <= each*limit, most)
}
