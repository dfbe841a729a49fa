// SPDX-License-Identifier: Apache-2.0

// Package processes tests consumers as what they are in the field: processes that are killed, and
// stopped for longer than their leases.
package processes

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/redisstore"
)

// The test binary is also the consumer process: these variables tell it so.
const (
	envStore = "BIDE_PROCESSES_STORE"
	envPart  = "BIDE_PROCESSES_PART"
)

const lease = time.Second

var queue = bide.NewQueue[int]("processes")

func TestMain(m *testing.M) {
	if part := os.Getenv(envPart); part != "" {
		if err := consume(part); err != nil {
			fmt.Fprintln(os.Stdout, "error:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// consume is the child. Every line that it prints is an event.
func consume(part string) error {
	ctx := context.Background()
	engine, err := redisstore.Open(ctx, os.Getenv(envStore))
	if err != nil {
		return err
	}
	config := bide.ConsumerConfig{
		Concurrency: 8, Lease: lease,
		Hooks: bide.Hooks{OnDone: func(d *bide.Delivery[[]byte], done bide.Done) {
			fmt.Fprintf(os.Stdout, "done %s verdict=%s settle=%v\n", d.ID, done.Verdict, done.Settle)
		}},
	}
	handle := handleForAWhile
	switch part {
	case "hold":
		handle = holdUntilLost
	case "hold, and tell":
		handle, config.OnDead = holdUntilLost, tellAndHang
	case "fail, and tell":
		handle, config.OnDead = fail, tellAndHang
	}
	consumer := bide.NewConsumer(bide.NewClient(engine, bide.ClientConfig{}), config)
	queue.Handle(consumer, handle)
	return consumer.Run(ctx)
}

// handleForAWhile leaves a kill the time to come in the middle.
func handleForAWhile(ctx context.Context, d *bide.Delivery[int]) error {
	fmt.Fprintln(os.Stdout, "started", d.ID, d.Claimed.UnixMilli(), time.Now().UnixMilli())
	select {
	case <-time.After(5 * time.Millisecond):
	case <-ctx.Done():
	}
	return nil
}

// holdUntilLost does not end before its context does, and then claims to have succeeded.
func holdUntilLost(ctx context.Context, d *bide.Delivery[int]) error {
	fmt.Fprintln(os.Stdout, "started", d.ID, d.Claimed.UnixMilli(), time.Now().UnixMilli())
	<-ctx.Done()
	fmt.Fprintf(os.Stdout, "ended %s: %v\n", d.ID, context.Cause(ctx))
	return nil
}

func fail(context.Context, *bide.Delivery[int]) error { return errors.New("boom") }

// dues is when messages are due, by what Enqueue answered.
type dues map[string]time.Time

// check fails if a message was handed out before it was due, by the engine's clock or by this one:
// they are of one machine.
func (d dues) check(t *testing.T, id string, instants ...time.Time) {
	t.Helper()
	due, ok := d[id]
	assert.True(t, ok, "a message that nobody enqueued:", id)
	for _, at := range instants {
		assert.True(t, !at.Before(due), id, "came early, at", at, "and was due", due)
	}
}

// child is a consumer process.
type child struct {
	cmd  *exec.Cmd
	out  *bufio.Reader
	dues dues
}

func start(t *testing.T, store, part string, d dues) *child {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envStore+"="+store, envPart+"="+part, "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	assert.NoError(t, err)
	assert.NoError(t, cmd.Start())
	c := &child{cmd, bufio.NewReader(out), d}
	t.Cleanup(func() { c.kill(t) })
	return c
}

// kill ends the process at once and reads what it had still said.
func (c *child) kill(t *testing.T) {
	t.Helper()
	_ = c.cmd.Process.Kill()
	for c.line(t, "") != nil {
	}
	_ = c.cmd.Wait() // says that it was killed
}

// line returns the words of the next event that begins with a word, none at the end. A message that
// came early fails the test wherever it stands.
func (c *child) line(t *testing.T, word string) []string {
	t.Helper()
	for {
		line, err := c.out.ReadString('\n')
		if err != nil {
			return nil
		}
		assert.True(t, !strings.HasPrefix(line, "error"), line)
		words := strings.Fields(line)
		if words[0] == "started" {
			var claimed, now int64
			_, err := fmt.Sscan(words[2]+" "+words[3], &claimed, &now)
			assert.NoError(t, err)
			c.dues.check(t, words[1], time.UnixMilli(claimed), time.UnixMilli(now))
		}
		if word == "" || words[0] == word {
			return words
		}
	}
}

func open(t *testing.T, store string) *bide.Client {
	t.Helper()
	engine, err := redisstore.Open(t.Context(), store)
	assert.NoError(t, err)
	client := bide.NewClient(engine, bide.ClientConfig{})
	t.Cleanup(func() {
		_ = client.Close(context.Background())
		_ = engine.Close()
	})
	return client
}
