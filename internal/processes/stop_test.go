// SPDX-License-Identifier: Apache-2.0

//go:build unix

package processes

import (
	"strings"
	"syscall"
	"testing"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/internal/redistest"
	"github.com/bidemq/bide/storage"
)

// A consumer is stopped for longer than its lease. Another one handles the message; when the first
// one goes on, its handler's context ends with the cause, and its late ack is refused.
func TestStoppedConsumerIsFenced(t *testing.T) {
	server := redistest.Start(t)
	client := open(t, server.URL())
	r, err := queue.Enqueue(t.Context(), client, 1, bide.ID("a"))
	assert.NoError(t, err)
	due := dues{"a": r.Due}

	c := start(t, server.URL(), "hold", due)
	assert.Equal(t, c.line(t, "started")[1], "a")
	assert.NoError(t, c.cmd.Process.Signal(syscall.SIGSTOP))
	finish(t, client, due, func(st storage.Stats) bool { return st.Total.Acked == 1 })
	before, err := client.Stats(t.Context(), queue.Name())
	assert.NoError(t, err)
	assert.Equal(t, before.Total.Lapsed, 1)

	assert.NoError(t, c.cmd.Process.Signal(syscall.SIGCONT))
	assert.Equal(t, strings.Join(c.line(t, "ended"), " "), "ended a: lease lost")
	done := strings.Join(c.line(t, "done"), " ")
	assert.True(t, strings.HasSuffix(done, "lease lost"), "the late ack was not refused:", done)
	after, err := client.Stats(t.Context(), queue.Name())
	assert.NoError(t, err)
	assert.Equal(t, after.Total.Acked, 1)
}
