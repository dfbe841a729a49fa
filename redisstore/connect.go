// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/rueidis"

	"github.com/bidemq/bide/internal/redisconn"
	"github.com/bidemq/bide/storage"
)

// pingTimeout is how long a ping may take before its connection is taken for dead.
const pingTimeout = redisconn.PingTimeout

// connect dials and looks at the server.
func connect(ctx context.Context, t redisconn.Target, o Options) (rueidis.Client, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, redisconn.DialTimeout, fmt.Errorf("no answer within %s", redisconn.DialTimeout))
	defer cancel()
	client, err := redisconn.Dial(ctx, t, o.TLS)
	if err != nil {
		return nil, openError(ctx, t, err)
	}
	if err := inspect(ctx, client, t, o); err != nil {
		client.Close()
		return nil, err
	}
	return client, nil
}

func openError(ctx context.Context, t redisconn.Target, err error) error {
	if cause := context.Cause(ctx); errors.Is(cause, context.Canceled) || errors.Is(cause, context.DeadlineExceeded) {
		return cause
	}
	return fmt.Errorf("redisstore: open %s: %w: %w", t, storage.ErrUnavailable, err)
}

// inspect refuses servers that would lose messages by design, and warns about those that may.
func inspect(ctx context.Context, client rueidis.Client, t redisconn.Target, o Options) error {
	cluster := t.Scheme == "redis+cluster"
	if cluster && client.Mode() != rueidis.ClientModeCluster {
		return fmt.Errorf("redisstore: open %s: %w: the server is no cluster, use redis://", t, storage.ErrInvalid)
	}
	nodes := map[string]rueidis.Client{t.Addresses[0]: client}
	if cluster {
		nodes = client.Nodes()
	}
	for address, node := range nodes {
		text, err := node.Do(ctx, node.B().Info().Build()).ToString()
		if answer, ok := rueidis.IsRedisErr(err); ok && strings.HasPrefix(answer.Error(), "NOPERM") {
			o.Logger.WarnContext(ctx, "redis does not let us look at its settings, which may lose messages", "address", address)
			continue
		}
		if err != nil {
			return openError(ctx, t, fmt.Errorf("info of %s: %w", address, err))
		}
		info := redisconn.ParseInfo(text)
		if !newEnough(info["redis_version"]) {
			return fmt.Errorf("redisstore: open %s: %w: the server has version %s, 6.2 is needed", t, storage.ErrInvalid, info["redis_version"])
		}
		if !cluster && info["cluster_enabled"] == "1" {
			return fmt.Errorf("redisstore: open %s: %w: the server is part of a cluster, use redis+cluster://", t, storage.ErrInvalid)
		}
		if p := info["maxmemory_policy"]; p != "" && p != "noeviction" {
			return fmt.Errorf("redisstore: open %s: %w: maxmemory-policy %s of %s loses messages, set it to noeviction", t, storage.ErrInvalid, p, address)
		}
		if info["aof_enabled"] == "0" {
			// Managed servers may not answer this; then nothing is known and nothing is said.
			save, err := node.Do(ctx, node.B().ConfigGet().Parameter("save").Build()).AsStrMap()
			if err == nil && save["save"] == "" {
				o.Logger.WarnContext(ctx, "redis keeps nothing over a restart: set appendonly yes", "address", address)
			}
		}
	}
	return nil
}

func newEnough(version string) bool {
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	a, err := strconv.Atoi(major)
	if err != nil {
		return false
	}
	b, err := strconv.Atoi(minor)
	return err == nil && (a > 6 || a == 6 && b >= 2)
}
