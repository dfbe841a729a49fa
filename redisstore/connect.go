// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/bidemq/bide/storage"
)

const (
	openTimeout = 4500 * time.Millisecond // of Open, which promises five seconds
	silence     = 7 * time.Second         // after which the client library pings a connection
	pingTimeout = 4 * time.Second         // after which a ping has failed, and the connection is replaced
)

// connect dials and looks at the server.
func connect(ctx context.Context, t target, o Options) (rueidis.Client, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, openTimeout, fmt.Errorf("no answer within %s", openTimeout))
	defer cancel()
	type result struct {
		client rueidis.Client
		err    error
	}
	dialed := make(chan result, 1)
	go func() {
		c, err := rueidis.NewClient(clientOption(t, o))
		dialed <- result{c, err}
	}()
	var r result
	select {
	case r = <-dialed:
	case <-ctx.Done():
		go func() { // dialing ends by its own timeout
			if r := <-dialed; r.err == nil {
				r.client.Close()
			}
		}()
		r.err = context.Cause(ctx)
	}
	if r.err != nil {
		return nil, openError(ctx, t, r.err)
	}
	if err := inspect(ctx, r.client, t, o); err != nil {
		r.client.Close()
		return nil, err
	}
	return r.client, nil
}

func openError(ctx context.Context, t target, err error) error {
	if cause := context.Cause(ctx); errors.Is(cause, context.Canceled) || errors.Is(cause, context.DeadlineExceeded) {
		return cause
	}
	return fmt.Errorf("redisstore: open %s: %w: %w", t, storage.ErrUnavailable, err)
}

func clientOption(t target, o Options) rueidis.ClientOption {
	c := rueidis.ClientOption{
		InitAddress:       t.addresses,
		Username:          t.user,
		Password:          t.password,
		SelectDB:          t.db,
		ClientName:        "bide",
		ClientSetInfo:     rueidis.DisableClientSetInfo,
		Dialer:            net.Dialer{Timeout: openTimeout - 500*time.Millisecond, KeepAlive: silence},
		ConnWriteTimeout:  pingTimeout,
		DisableCache:      true,
		DisableRetry:      true, // what may be repeated is decided in call.go
		AlwaysPipelining:  true, // notices a cut connection before the next call does
		PipelineMultiplex: -1,   // one connection, so that an idle one costs one ping
		TLSConfig:         o.TLS,
	}
	switch t.scheme {
	case "redis":
		c.TLSConfig = nil
		c.ForceSingleClient = true
	case "rediss":
		c.ForceSingleClient = true
		if c.TLSConfig == nil {
			host, _, _ := net.SplitHostPort(t.addresses[0])
			c.TLSConfig = &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12}
		}
	case "redis+unix":
		c.TLSConfig = nil
		c.ForceSingleClient = true
		c.DialCtxFn = func(ctx context.Context, path string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
			return d.DialContext(ctx, "unix", path)
		}
	case "redis+sentinel":
		c.Sentinel = rueidis.SentinelOption{
			MasterSet:               t.primary,
			Dialer:                  c.Dialer,
			TLSConfig:               o.TLS,
			TopologyRefreshInterval: 5 * time.Second, // finds a failover whose notice was lost
		}
	case "redis+cluster":
		c.ClusterOption.ShardsRefreshInterval = time.Minute
	}
	return c
}

// inspect refuses servers that would lose messages by design, and warns about those that may.
func inspect(ctx context.Context, client rueidis.Client, t target, o Options) error {
	cluster := t.scheme == "redis+cluster"
	if cluster && client.Mode() != rueidis.ClientModeCluster {
		return fmt.Errorf("redisstore: open %s: %w: the server is no cluster, use redis://", t, storage.ErrInvalid)
	}
	nodes := map[string]rueidis.Client{t.addresses[0]: client}
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
		info := parseInfo(text)
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

func parseInfo(text string) map[string]string {
	info := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[name] = value
		}
	}
	return info
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
