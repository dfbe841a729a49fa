// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// redis is the server that Redis-based systems share, with a connection of the harness's own.
type redis struct {
	client rueidis.Client
}

// Info is what Redis says about itself.
type Info struct {
	Commands   int64 // executed, those inside scripts included, but for INFO itself
	Reads      int64 // from its sockets, about the number of round trips
	UsedMemory int64 // bytes
}

// RedisOptions of a server. The zero value keeps nothing on the disk and is near.
type RedisOptions struct {
	AOF  string        // what appendfsync is to be, "" is no append-only file
	Away time.Duration // added to everything that clients send and get, each way
}

// StartRedis runs a Redis and returns the address for clients.
func (h *Host) StartRedis(ctx context.Context, o RedisOptions) (string, error) {
	address, err := h.Start(ctx, "redis-server", func(port string) []string {
		args := []string{"--bind", "127.0.0.1", "--port", port, "--dir", h.Data(), "--save", ""}
		if o.AOF == "" {
			return append(args, "--appendonly", "no")
		}
		return append(args, "--appendonly", "yes", "--appendfsync", o.AOF)
	})
	if err != nil {
		return "", err
	}
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{address}, DisableCache: true})
	if err != nil {
		return "", fmt.Errorf("connect to redis: %w", err)
	}
	h.redis = &redis{client: client}
	if o.Away > 0 {
		return h.startRelay(ctx, address, o.Away)
	}
	return address, nil
}

// RelayCommand of the harness serves a relay: its arguments are a port, an address, and how far away
// that is to seem.
const RelayCommand = "relay"

// startRelay puts a relay before an address. It is a process of its own, so that what it does is put
// down to nobody.
func (h *Host) startRelay(ctx context.Context, address string, away time.Duration) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	return h.StartProgram(ctx, Program{Path: self, Role: Scenery}, func(port string) []string {
		return []string{RelayCommand, port, address, away.String()}
	})
}

// HasRedis says whether StartRedis was called.
func (h *Host) HasRedis() bool { return h.redis != nil }

// Redis asks the Redis server about itself.
func (h *Host) Redis(ctx context.Context) (Info, error) {
	text, err := h.redis.client.Do(ctx, h.redis.client.B().Info().Section("all").Build()).ToString()
	if err != nil {
		return Info{}, fmt.Errorf("ask redis: %w", err)
	}
	return parseInfo(text)
}

// CommandStats is what Redis says about the commands that it has executed, as it says it.
func (h *Host) CommandStats(ctx context.Context) (string, error) {
	return h.redis.client.Do(ctx, h.redis.client.B().Info().Section("commandstats").Build()).ToString()
}

func parseInfo(text string) (Info, error) {
	var info Info
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		var err error
		switch {
		case name == "used_memory":
			info.UsedMemory, err = strconv.ParseInt(value, 10, 64)
		case name == "total_reads_processed":
			info.Reads, err = strconv.ParseInt(value, 10, 64)
		case strings.HasPrefix(name, "cmdstat_") && name != "cmdstat_info":
			calls, _, _ := strings.Cut(strings.TrimPrefix(value, "calls="), ",")
			var n int64
			n, err = strconv.ParseInt(calls, 10, 64)
			info.Commands += n
		}
		if err != nil {
			return Info{}, fmt.Errorf("read %q of redis: %w", line, err)
		}
	}
	return info, nil
}
