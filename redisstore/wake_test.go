// SPDX-License-Identifier: Apache-2.0

package redisstore_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/internal/redistest"
	"github.com/bidemq/bide/redisstore"
	"github.com/bidemq/bide/storage"
	"github.com/bidemq/bide/storage/storagetest"
)

// sleeper is a process that waits for a queue, and says when a wait of it ends.
type sleeper struct {
	store *redisstore.Store
	woken chan []int
}

// sleep starts a process that claims nothing and waits. It has entered Redis when sleep returns.
func sleep(t *testing.T, server *redistest.Server, queue string, waiters int) sleeper {
	t.Helper()
	return sleepAt(t, server.URL(), server, queue, waiters)
}

func sleepAt(t *testing.T, url string, server *redistest.Server, queue string, waiters int) sleeper {
	t.Helper()
	s := sleeper{store: open(t, url), woken: make(chan []int, 1)}
	s.wait(t, queue)
	redistest.Until(t, "the process waits", func() bool { return entered(t, server, queue) == waiters })
	return s
}

func (s sleeper) wait(t *testing.T, queue string) {
	go func() {
		ready, err := s.store.Wait(t.Context(), []storage.Scope{{Queue: queue}}, storage.Forever)
		if err == nil {
			s.woken <- ready
		}
	}()
}

func entered(t *testing.T, server *redistest.Server, queue string) int {
	t.Helper()
	n, err := strconv.Atoi(server.Do(t, "ZCARD", "bide:{default/"+queue+"/0}:waiters"))
	assert.NoError(t, err)
	return n
}

// R8: one message wakes one of three processes, and that one alone.
func TestOneMessageWakesOneProcess(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	wakesOne(t, server.URL(), server)
}

func TestOneMessageWakesOneProcessOfACluster(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t)
	for range 3 { // queues at different servers, more or less
		wakesOne(t, c.URL(), c.Nodes[0])
	}
}

func wakesOne(t *testing.T, url string, server *redistest.Server) {
	t.Helper()
	queue := storagetest.NewQueueName()
	woken := make(chan int, 3)
	var sleepers []sleeper
	for i := range 3 {
		s := sleepAt(t, url, server, queue, i+1)
		sleepers = append(sleepers, s)
		go func() {
			select {
			case <-s.woken:
				woken <- i
			case <-t.Context().Done():
			}
		}()
	}
	producer := open(t, url)
	enqueue(t, producer, queue, storage.Record{ID: "a"})
	first := <-woken
	assert.Equal(t, len(claim(t, sleepers[first].store, queue, 10, time.Minute).Records), 1)
	assert.Equal(t, stats(t, producer, queue).Total.Wakeups, 1)
	assert.Equal(t, entered(t, server, queue), 3, "who was woken waits again")
	select {
	case i := <-woken:
		t.Fatalf("process %d was woken too", i)
	case <-time.After(200 * time.Millisecond):
	}
	sleepers[first].wait(t, queue)

	// The next one, enqueued by somebody who waits himself, wakes one again.
	enqueue(t, sleepers[0].store, queue, storage.Record{ID: "b"})
	redistest.Until(t, "a second wake-up", func() bool { return stats(t, producer, queue).Total.Wakeups == 2 })
}

// R8: who claims and leaves something behind wakes the next.
func TestWhatIsLeftBehindWakesTheNext(t *testing.T) {
	t.Parallel()
	server, queue := redistest.Shared(t), storagetest.NewQueueName()
	a, b := sleep(t, server, queue, 1), sleep(t, server, queue, 2)
	producer := open(t, server.URL())
	enqueue(t, producer, queue, storage.Record{ID: "1"}, storage.Record{ID: "2"})
	first, second := a, b
	select {
	case <-a.woken:
	case <-b.woken:
		first, second = b, a
	}
	assert.Equal(t, len(claim(t, first.store, queue, 1, time.Minute).Records), 1)
	assert.Equal(t, <-second.woken, []int{0})
	assert.Equal(t, len(claim(t, second.store, queue, 1, time.Minute).Records), 1)
}

// R8: a process that was killed leaves its entry behind, and swallows no notice.
func TestTheDeadSwallowNoNotice(t *testing.T) {
	t.Parallel()
	server, queue := redistest.Shared(t), storagetest.NewQueueName()
	key := "bide:{default/" + queue + "/0}:waiters"
	living := sleep(t, server, queue, 1)
	for i := range 5 { // they sleep longest, so that they are asked first
		server.Do(t, "ZADD", key, "4e15", fmt.Sprintf("bide:default:dead%d %s", i, queue))
	}
	enqueue(t, open(t, server.URL()), queue, storage.Record{ID: "a"})
	assert.Equal(t, <-living.woken, []int{0})
	assert.Equal(t, entered(t, server, queue), 0)
}

// R8: a process that is woken and does not claim passes the notice on.
func TestWhoDoesNotClaimPassesTheNoticeOn(t *testing.T) {
	t.Parallel()
	server, queue := redistest.Shared(t), storagetest.NewQueueName()
	a, b := sleep(t, server, queue, 1), sleep(t, server, queue, 2)
	enqueue(t, open(t, server.URL()), queue, storage.Record{ID: "a"})
	assert.Equal(t, <-a.woken, []int{0})
	assert.Equal(t, <-b.woken, []int{0})
}

// R8: of two who wait for the same due time one comes exactly, the other a little later, so that a
// message is not claimed by all at once, and is by one if the other dies.
func TestTwoComeForOneDueTime(t *testing.T) {
	t.Parallel()
	server, queue := redistest.Shared(t), storagetest.NewQueueName()
	a, b := open(t, server.URL()), open(t, server.URL())
	for _, s := range []*redisstore.Store{a, b} { // who has waited once is entered by his claims
		_, err := s.Wait(t.Context(), []storage.Scope{{Queue: queue}}, time.Millisecond)
		assert.NoError(t, err)
		redistest.Until(t, "notices are heard", func() bool {
			_, err := s.Wait(t.Context(), []storage.Scope{{Queue: queue}}, time.Millisecond)
			assert.NoError(t, err)
			return strings.Contains(server.Do(t, "ZRANGE", "bide:{default/"+queue+"/0}:waiters", "0", "-1"), queue)
		})
	}
	redistest.Until(t, "both are entered", func() bool {
		for _, s := range []*redisstore.Store{a, b} {
			_, err := s.Wait(t.Context(), []storage.Scope{{Queue: queue}}, time.Millisecond)
			assert.NoError(t, err)
		}
		return entered(t, server, queue) == 2
	})
	due := enqueue(t, open(t, server.URL()), queue, storage.Record{ID: "a", Delay: 30 * time.Second})[0].Due
	exact, late := claim(t, a, queue, 1, time.Minute), claim(t, b, queue, 1, time.Minute)
	assert.Equal(t, exact.Next, due.Sub(exact.Now))
	slack := late.Next - due.Sub(late.Now)
	assert.True(t, slack >= 20*time.Millisecond && slack < 150*time.Millisecond, slack)
	again := claim(t, a, queue, 1, time.Minute)
	assert.Equal(t, again.Next, due.Sub(again.Now), "who comes first stays the first")
}

// R8: a process that dies with a message in hand is followed by another one when its lease ends.
func TestTheEndOfALeaseWakesAnother(t *testing.T) {
	t.Parallel()
	server, queue := redistest.Shared(t), storagetest.NewQueueName()
	other := sleep(t, server, queue, 1)
	victim := open(t, server.URL())
	enqueue(t, victim, queue, storage.Record{ID: "a"})
	assert.Equal(t, <-other.woken, []int{0})
	assert.Equal(t, len(claim(t, other.store, queue, 1, time.Minute).Records), 1)
	other.wait(t, queue)
	redistest.Until(t, "the process waits again", func() bool { return entered(t, server, queue) == 1 })

	enqueue(t, victim, queue, storage.Record{ID: "b"})
	ready := <-other.woken
	assert.Equal(t, ready, []int{0})
	other.wait(t, queue) // returns at once until it claims, and the victim is faster
	<-other.woken
	c := claim(t, victim, queue, 1, 500*time.Millisecond)
	assert.Equal(t, len(c.Records), 1)
	assert.Equal(t, len(claim(t, other.store, queue, 1, time.Minute).Records), 0)
	other.wait(t, queue)
	<-other.woken
	redistest.Until(t, "the message is taken over", func() bool {
		return len(claim(t, other.store, queue, 1, time.Minute).Records) == 1
	})
	assert.Equal(t, stats(t, victim, queue).Total.Lapsed, 1)
}

// Ten queues whose consumers wait cost less than one command a second, those inside of scripts and
// the pings included.
func TestIdleQueuesCostNothing(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := open(t, server.URL())
	var queues []string
	for range 10 {
		queues = append(queues, storagetest.NewQueueName())
		enqueue(t, s, queues[len(queues)-1], storage.Record{ID: "a"})
		c := claim(t, s, queues[len(queues)-1], 1, time.Minute)
		lost, err := s.Settle(t.Context(), time.Time{}, []storage.Settlement{
			{Receipt: c.Records[0].Receipt(queues[len(queues)-1]), Verdict: storage.Ack},
		})
		assert.NoError(t, err)
		assert.Equal(t, len(lost), 0)
	}
	var scopes []storage.Scope
	for _, q := range queues {
		scopes = append(scopes, storage.Scope{Queue: q})
	}
	consume := func(ctx context.Context) {
		for {
			ready, err := s.Wait(ctx, scopes, storage.Forever)
			if err != nil {
				return
			}
			for _, i := range ready {
				_, _ = s.Claim(ctx, time.Time{}, storage.Claim{Queue: queues[i], Limit: 10, Lease: time.Minute})
			}
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		consume(ctx)
	}()
	for _, q := range queues {
		redistest.Until(t, "the process waits", func() bool { return entered(t, server, q) == 1 })
	}
	watched := 30 * time.Second
	if testing.Short() {
		watched = 4 * time.Second
	}
	before := commands(t, server)
	began := time.Now()
	timer := time.NewTimer(watched)
	defer timer.Stop()
	<-timer.C
	spent := commands(t, server) - before
	perSecond := float64(spent) / time.Since(began).Seconds()
	t.Logf("%d commands in %s", spent, watched)
	assert.True(t, perSecond < 1, "commands a second:", perSecond)
	stop()
	<-done
}

// commands counts what the server has run, but for what the count itself takes.
func commands(t *testing.T, server *redistest.Server) int {
	t.Helper()
	sum := 0
	for _, n := range commandStats(t, server) {
		sum += n
	}
	return sum
}

// commandStats is how often the server has run each command, but for the count itself.
func commandStats(t testing.TB, server *redistest.Server) map[string]int {
	t.Helper()
	calls := map[string]int{}
	for line := range strings.FieldsSeq(server.Do(t, "INFO", "commandstats")) {
		name, rest, ok := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":calls=")
		if !ok || name == "info" {
			continue
		}
		count, _, _ := strings.Cut(rest, ",")
		n, err := strconv.Atoi(count)
		assert.NoError(t, err)
		calls[name] = n
	}
	return calls
}
