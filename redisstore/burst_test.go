// SPDX-License-Identifier: Apache-2.0

package redisstore_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/internal/redisconn"
	"github.com/bidemq/bide/internal/redistest"
	"github.com/bidemq/bide/storage"
)

// burstVariable says how many messages TestBurst has; the form with it also wants that no script holds
// the server up.
const burstVariable = "BIDE_BURST"

const (
	burstPings = "BIDE_BURST_PINGS" // the socket of the server, for the process that pings it
	burstBatch = 500
	held       = 5 * time.Millisecond // what a script may take
)

// R2 R8: messages that are due in the same millisecond all come, once and not early, while the server
// goes on answering others.
func TestBurst(t *testing.T) {
	if socket := os.Getenv(burstPings); socket != "" {
		pings(t, socket)
		return
	}
	n, err := strconv.Atoi(os.Getenv(burstVariable))
	long := err == nil
	if !long {
		t.Parallel()
		n = 20_000
	}
	b := newBurst(t, n)
	stop := pinging(t, b.server)
	b.enqueue()
	t.Logf("a ping while %d messages are enqueued: %s", n, stop())
	slow := b.slowest()
	t.Logf("slower than %s while they are: %v", held, slow)
	b.server.Do(t, "SLOWLOG", "RESET")
	ran, scripts := commands(t, b.server), commandStats(t, b.server)["evalsha"]
	<-time.After(time.Until(b.due) - 100*time.Millisecond)
	stop = pinging(t, b.server)
	b.finish()
	t.Logf("a ping during the burst: %s", stop())
	scripts = commandStats(t, b.server)["evalsha"] - scripts
	ran = commands(t, b.server) - ran
	t.Logf("%d scripts with %.1f commands and %.1f messages each", scripts, float64(ran)/float64(scripts), float64(n)/float64(scripts))
	for name, took := range b.slowest() {
		slow[name] = max(slow[name], took)
	}
	t.Logf("slower than %s, then as well: %v", held, slow)
	if long {
		for name, took := range slow {
			assert.True(t, took <= held, name, "held the server for", took)
		}
	}
}

// No script of a burst runs more than so many commands, itself included, whatever is due.
func TestCommandsOfABurst(t *testing.T) {
	t.Parallel()
	b := newBurst(t, 20_000)
	stop := b.monitor()
	b.enqueue()
	b.finish()
	most := stop()
	t.Logf("commands at most: %v", most)
	for _, name := range []string{"enqueue", "claim", "settle"} {
		assert.True(t, most[name] > 0, "no", name)
	}
	for name, n := range most {
		assert.True(t, n <= 30, name, "runs", n, "commands, given back:", b.released)
	}
}

// burst is messages that two processes wait for.
type burst struct {
	*testing.T
	server *redistest.Server
	queue  *bide.Queue[[]byte]
	client *bide.Client
	names  map[string]string // of scripts, by hash
	due    time.Time
	stop   func()

	seen  []atomic.Int32
	lags  []time.Duration // from due until the handler starts, by message
	early atomic.Int32
	left  atomic.Int32
	all   chan struct{} // closed when every message has come

	released int64 // by the consumers, when finish has returned
}

func newBurst(t *testing.T, n int) *burst {
	t.Helper()
	server := redistest.Start(t, redistest.Config("slowlog-max-len", "10000"))
	queue := bide.NewQueue[[]byte]("burst")
	b := &burst{
		T: t, server: server, queue: queue, names: map[string]string{},
		client: bide.NewClient(open(t, server.URL()), bide.ClientConfig{}),
		seen:   make([]atomic.Int32, n), lags: make([]time.Duration, n), all: make(chan struct{}),
	}
	b.left.Store(int32(n))
	b.learn()

	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for range 2 {
		consumer := bide.NewConsumer(bide.NewClient(open(t, server.URL()), bide.ClientConfig{}), bide.ConsumerConfig{Concurrency: 64})
		queue.Handle(consumer, b.handle)
		running.Go(func() {
			if err := consumer.Run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	b.stop = func() {
		cancel()
		running.Wait()
	}
	t.Cleanup(b.stop)
	redistest.Until(t, "both wait", func() bool { return entered(t, server, queue.Name()) == 2 })
	return b
}

func (b *burst) handle(_ context.Context, d *bide.Delivery[[]byte]) error {
	lag := time.Since(b.due)
	i := binary.BigEndian.Uint64(d.Body)
	if d.Claimed.Before(b.due) || lag < 0 {
		b.early.Add(1)
	}
	if b.seen[i].Add(1) == 1 {
		b.lags[i] = lag
		if b.left.Add(-1) == 0 {
			close(b.all)
		}
	}
	return nil
}

func (b *burst) enqueue() {
	b.Helper()
	n := len(b.seen)
	b.due = time.Now().Add(8*time.Second + time.Duration(n)*40*time.Microsecond).Truncate(time.Millisecond)
	for from := 0; from < n; from += burstBatch {
		ms := make([]bide.Message, min(burstBatch, n-from))
		for i := range ms {
			ms[i] = bide.Message{Body: binary.BigEndian.AppendUint64(nil, uint64(from+i)), Due: b.due}
		}
		_, err := b.client.EnqueueMany(b.Context(), b.queue.Name(), ms)
		assert.NoError(b, err)
	}
	assert.True(b, time.Now().Before(b.due), "enqueueing took too long for a burst")
}

// finish waits until all have come, and says what came of them.
func (b *burst) finish() {
	b.Helper()
	select {
	case <-b.all:
	case <-time.After(time.Until(b.due) + 5*time.Minute):
		b.Fatalf("%d messages have not come", b.left.Load())
	}
	b.stop()
	st, err := b.client.Stats(b.Context(), b.queue.Name())
	assert.NoError(b, err)
	n, twice := int64(len(b.seen)), int64(0)
	for i := range b.seen {
		twice += int64(b.seen[i].Load()) - 1
	}
	assert.Equal(b, []int64{st.Delayed, st.Ready, st.Leased, st.Dead, st.Total.Acked}, []int64{0, 0, 0, 0, n})
	assert.True(b, twice <= st.Total.Lapsed, twice, "came twice, leases ended:", st.Total.Lapsed)
	assert.Equal(b, b.early.Load(), int32(0))
	b.released = st.Total.Released
	slices.Sort(b.lags)
	b.Logf("%d messages due at once: lag of the first %s, of half %s, of the last %s; %d came twice, %d were given back",
		n, b.lags[0], b.lags[n/2], b.lags[n-1], twice, b.released)
}

// learn finds out what hash each script has, from what a call leaves in the log.
func (b *burst) learn() {
	b.Helper()
	s := open(b, b.server.URL())
	b.server.Do(b, "CONFIG", "SET", "slowlog-log-slower-than", "0")
	name := func(script string, do func()) {
		b.server.Do(b, "SLOWLOG", "RESET")
		do()
		for _, e := range b.log() {
			if e.sha != "" {
				b.names[e.sha] = script
			}
		}
	}
	const queue = "learned"
	var c storage.Claimed
	name("enqueue", func() { enqueue(b, s, queue, storage.Record{ID: "a"}) })
	name("claim", func() { c = claim(b, s, queue, 1, time.Minute) })
	name("extend", func() {
		_, err := s.Extend(b.Context(), time.Time{}, time.Minute, []storage.Receipt{c.Records[0].Receipt(queue)})
		assert.NoError(b, err)
	})
	name("settle", func() {
		_, err := s.Settle(b.Context(), time.Time{}, []storage.Settlement{{Receipt: c.Records[0].Receipt(queue), Verdict: storage.Ack}})
		assert.NoError(b, err)
	})
	name("stats", func() { stats(b, s, queue) })
	b.server.Do(b, "CONFIG", "SET", "slowlog-log-slower-than", strconv.FormatInt(held.Microseconds(), 10))
	b.server.Do(b, "SLOWLOG", "RESET")
}

// logged is an entry of the log of slow commands.
type logged struct {
	command string
	sha     string // of a script
	took    time.Duration
}

func (b *burst) log() []logged {
	b.Helper()
	target, err := redisconn.Parse(b.server.URL())
	assert.NoError(b, err)
	c, err := redisconn.Dial(b.Context(), target, nil)
	assert.NoError(b, err)
	defer c.Close()
	entries, err := c.Do(b.Context(), c.B().SlowlogGet().Count(10_000).Build()).ToArray()
	assert.NoError(b, err)
	var all []logged
	for _, e := range entries {
		fields, err := e.ToArray()
		assert.NoError(b, err)
		micros, err := fields[2].AsInt64()
		assert.NoError(b, err)
		words, err := fields[3].AsStrSlice()
		assert.NoError(b, err)
		l := logged{command: strings.ToLower(words[0]), took: time.Duration(micros) * time.Microsecond}
		if l.command == "evalsha" {
			l.sha = words[1]
		}
		all = append(all, l)
	}
	return all
}

// slowest is what took longest of each command that is in the log.
func (b *burst) slowest() map[string]time.Duration {
	b.Helper()
	slow := map[string]time.Duration{}
	for _, l := range b.log() {
		name := cmp.Or(b.names[l.sha], l.sha, l.command)
		slow[name] = max(slow[name], l.took)
	}
	return slow
}

// monitor reads what the server does. The answer to stop is how many commands the longest run of each
// script took, itself included.
func (b *burst) monitor() (stop func() map[string]int) {
	b.Helper()
	c, err := net.Dial("unix", b.server.Address())
	assert.NoError(b, err)
	_, err = io.WriteString(c, "MONITOR\r\n")
	assert.NoError(b, err)
	r := bufio.NewReader(c)
	line, err := r.ReadString('\n')
	assert.NoError(b, err)
	assert.Equal(b, line, "+OK\r\n")
	const end = "that is all"
	most := make(chan map[string]int, 1)
	go func() {
		longest, script, n := map[string]int{}, "", 0
		for {
			line, more, err := r.ReadLine()
			text := string(line)
			for more && err == nil {
				_, more, err = r.ReadLine()
			}
			if err != nil || strings.Contains(text, end) {
				most <- longest
				return
			}
			_, source, _ := strings.Cut(text, " ")
			if strings.HasPrefix(source, "[0 lua]") {
				n++
				longest[script] = max(longest[script], n)
				continue
			}
			n, script = 1, text
			if words := strings.Split(source, `"`); len(words) > 3 && strings.EqualFold(words[1], "evalsha") {
				script = cmp.Or(b.names[words[3]], words[3])
			}
		}
	}()
	return func() map[string]int {
		b.server.Do(b, "ECHO", end)
		defer func() { _ = c.Close() }()
		return <-most
	}
}

// pinging starts a process that pings the server. The answer to stop is how long the pings took.
func pinging(t *testing.T, server *redistest.Server) (stop func() string) {
	t.Helper()
	self, err := os.Executable()
	assert.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestBurst$")
	cmd.Env = append(os.Environ(), burstPings+"="+server.Address())
	in, err := cmd.StdinPipe()
	assert.NoError(t, err)
	out, err := cmd.StdoutPipe()
	assert.NoError(t, err)
	assert.NoError(t, cmd.Start())
	return func() string {
		assert.NoError(t, in.Close())
		line, err := bufio.NewReader(out).ReadString('\n')
		assert.NoError(t, err)
		_, err = io.Copy(io.Discard, out)
		assert.NoError(t, err)
		assert.NoError(t, cmd.Wait())
		return strings.TrimSpace(line)
	}
}

// pings pings a server every millisecond until there is no more input, and prints how long that took.
func pings(t *testing.T, socket string) {
	t.Helper()
	c, err := net.Dial("unix", socket)
	assert.NoError(t, err)
	defer func() { _ = c.Close() }()
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(ended)
	}()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	var took []time.Duration
	answer := make([]byte, len("+PONG\r\n"))
	for {
		began := time.Now()
		_, err := io.WriteString(c, "PING\r\n")
		assert.NoError(t, err)
		_, err = io.ReadFull(c, answer)
		assert.NoError(t, err)
		took = append(took, time.Since(began))
		select {
		case <-tick.C:
			continue
		case <-ended:
		}
		slices.Sort(took)
		at := func(q float64) time.Duration { return took[int(q*float64(len(took)-1))] }
		_, _ = fmt.Fprintf(os.Stdout, "p50 %s, p99 %s, max %s of %d\n", at(0.5), at(0.99), at(1), len(took))
		return
	}
}
