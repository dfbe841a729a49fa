// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"net"
	"os/exec"
	"testing"
	"time"

	"github.com/bidemq/bide/bench/server"
	"github.com/bidemq/bide/internal/assert"
)

func TestRedisIsMeasuredAndEnds(t *testing.T) {
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skip("redis-server is not on the path")
	}
	host, err := server.NewHost(t.TempDir())
	assert.NoError(t, err)
	defer host.Close()
	address, err := host.StartRedis(t.Context(), server.RedisOptions{})
	assert.NoError(t, err)

	before, err := host.Redis(t.Context())
	assert.NoError(t, err)
	_, err = host.CommandStats(t.Context()) // an INFO, which is not counted
	assert.NoError(t, err)
	after, err := host.Redis(t.Context())
	assert.NoError(t, err)
	assert.Equal(t, after.Commands, before.Commands)
	assert.True(t, after.Reads > before.Reads)
	memory, err := host.Memory(t.Context())
	assert.NoError(t, err)
	assert.True(t, memory > 1<<16, memory)
	_, err = host.CPU(server.Server)
	assert.NoError(t, err)

	host.Close()
	_, err = net.DialTimeout("tcp", address, time.Second)
	assert.True(t, err != nil, "something listens on", address)
}

func TestAProgramThatEndsIsAnError(t *testing.T) {
	host, err := server.NewHost(t.TempDir())
	assert.NoError(t, err)
	defer host.Close()
	_, err = host.Start(t.Context(), "false", func(string) []string { return nil })
	assert.True(t, err != nil)
	_, err = host.Start(t.Context(), "no-such-program", func(string) []string { return nil })
	assert.ErrorIs(t, err, exec.ErrNotFound)
}
