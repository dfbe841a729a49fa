// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/internal/redisconn"
	"github.com/bidemq/bide/internal/redistest"
	"github.com/bidemq/bide/redisstore"
)

// Imports that are killed again and again bring every entry once, while a consumer drains the queue.
func TestKilledImportsBringEveryEntryOnce(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := dialTest(t, server.URL())
	for _, c := range []struct {
		kind   string
		remove bool
	}{{"zset", false}, {"zset", true}, {"list", false}, {"list", true}} {
		t.Run(fmt.Sprintf("%s,remove=%t", c.kind, c.remove), func(t *testing.T) {
			const entries = 3000
			key, queue := t.Name(), "q"
			fill(t, client, c.kind, key, entries)
			store := server.URL() + "?namespace=" + c.kind + strconv.FormatBool(c.remove)
			seen := consume(t, store, queue)
			args := []string{"import", c.kind, "--store", store, "--from", server.URL(), "--key", key, "--queue", queue, "--batch", "10"}
			if c.remove {
				args = append(args, "--remove")
			}
			kills := 0
			for range 10 {
				if killed(t, args, time.Duration(20+rand.IntN(40))*time.Millisecond) {
					kills++
				}
				unlock(t, client)
			}
			runToEnd(t, args)
			redistest.Until(t, "everything is handled", func() bool { return seen.distinct() == entries })
			assert.Equal(t, seen.repeated(), []string(nil))
			assert.True(t, kills > 0, "no import was killed before its end")
			left := server.Do(t, "EXISTS", key)
			assert.Equal(t, left, map[bool]string{true: "0", false: "1"}[c.remove])
		})
	}
}

// The same into a directory, which one process holds.
func TestKilledImportsIntoADirectory(t *testing.T) {
	t.Parallel()
	const entries = 2000
	server := redistest.Start(t)
	client := dialTest(t, server.URL())
	fill(t, client, "zset", "key", entries)
	store := "pebble:" + filepath.Join(t.TempDir(), "store")
	args := []string{"import", "zset", "--store", store, "--from", server.URL(), "--key", "key", "--queue", "q", "--batch", "10"}
	for range 5 {
		killed(t, args, time.Duration(50+rand.IntN(100))*time.Millisecond)
		unlock(t, client)
	}
	runToEnd(t, args)
	out, err := exec.CommandContext(t.Context(), "bide", "stats", "q", "--json", "--store", store).Output()
	assert.NoError(t, err)
	assert.True(t, strings.Contains(string(out), `"ready":2000,`), string(out))
}

// Interrupted by a person, an import ends what it has begun and says how far it came.
func TestInterruptedImportGoesOn(t *testing.T) {
	t.Parallel()
	const entries = 20_000
	server := redistest.Start(t)
	fill(t, dialTest(t, server.URL()), "zset", "key", entries)
	store := server.URL() + "?namespace=interrupted"
	args := []string{"import", "zset", "--store", store, "--from", server.URL(), "--key", "key", "--queue", "q", "--batch", "5"}
	cmd := exec.CommandContext(t.Context(), "bide", args...)
	var out strings.Builder
	cmd.Stdout = &out
	assert.NoError(t, cmd.Start())
	redistest.Until(t, "something is imported", func() bool {
		return server.Do(t, "EXISTS", "bide:{interrupted/q/0}:records") == "1"
	})
	assert.NoError(t, cmd.Process.Signal(os.Interrupt))
	_ = cmd.Wait()
	assert.Equal(t, cmd.ProcessState.ExitCode(), interrupted)
	assert.True(t, strings.Contains(out.String(), "imported, 0 updated, 0 known from before, 0 refused"), out.String())
	runToEnd(t, append(args[:len(args)-1], "1000"))
	assert.Equal(t, server.Do(t, "HLEN", "bide:{interrupted/q/0}:records"), strconv.Itoa(entries))
}

func dialTest(t *testing.T, url string) rueidis.Client {
	t.Helper()
	target, err := redisconn.Parse(url)
	assert.NoError(t, err)
	client, err := redisconn.Dial(t.Context(), target, nil)
	assert.NoError(t, err)
	t.Cleanup(client.Close)
	return client
}

// fill writes entries as the articles do. Half of those of a list are equal to another.
func fill(t *testing.T, client rueidis.Client, kind, key string, entries int) {
	t.Helper()
	var commands rueidis.Commands
	for i := range entries {
		if kind == "zset" {
			commands = append(commands, client.B().Zadd().Key(key).ScoreMember().ScoreMember(float64(1_700_000_000+i), fmt.Sprintf("order-%d", i)).Build())
		} else {
			commands = append(commands, client.B().Lpush().Key(key).Element(fmt.Sprintf("mail-%d", i/2)).Build())
		}
	}
	for _, r := range client.DoMulti(t.Context(), commands...) {
		assert.NoError(t, r.Error())
	}
}

// handled counts deliveries by id.
type handled struct {
	mu    sync.Mutex
	times map[string]int
}

func (h *handled) distinct() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.times)
}

func (h *handled) repeated() (ids []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for id, n := range h.times {
		if n > 1 {
			ids = append(ids, fmt.Sprintf("%s %d times", id, n))
		}
	}
	return ids
}

// consume handles what comes until the test ends.
func consume(t *testing.T, store, name string) *handled {
	t.Helper()
	engine, err := redisstore.Open(t.Context(), store)
	assert.NoError(t, err)
	client := bide.NewClient(engine, bide.ClientConfig{})
	consumer := bide.NewConsumer(client, bide.ConsumerConfig{})
	h := &handled{times: map[string]int{}}
	consumer.Handle(name, func(_ context.Context, d *bide.Delivery[[]byte]) error {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.times[d.ID]++
		return nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- consumer.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		assert.NoError(t, <-done)
		_ = client.Close(context.Background())
		_ = engine.Close()
	})
	return h
}

// killed runs bide and kills it after a while. It says whether bide was still running.
func killed(t *testing.T, args []string, after time.Duration) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), after)
	defer cancel()
	err := exec.CommandContext(ctx, "bide", args...).Run()
	return err != nil && ctx.Err() != nil
}

// unlock does what time does to the lock of an import that was killed, within seconds.
func unlock(t *testing.T, client rueidis.Client) {
	t.Helper()
	locks, err := client.Do(t.Context(), client.B().Keys().Pattern("bide:import:*:lock").Build()).AsStrSlice()
	assert.NoError(t, err)
	for _, lock := range locks {
		assert.NoError(t, client.Do(t.Context(), client.B().Del().Key(lock).Build()).Error())
	}
}

func runToEnd(t *testing.T, args []string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "bide", args...).CombinedOutput()
	assert.NoError(t, err, string(out))
	t.Logf("%s", out)
}
