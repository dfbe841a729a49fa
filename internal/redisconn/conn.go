// SPDX-License-Identifier: Apache-2.0

// Package redisconn connects to Redis by URL: one server, a primary with Sentinel, or a Cluster. The
// engine uses it, and the tools that read a server which is no store of bide.
package redisconn

import (
	"context"
	"crypto/tls"
	"net"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

const (
	// DialTimeout bounds how long a server may take to answer at first; opening promises five
	// seconds.
	DialTimeout = 4500 * time.Millisecond
	// PingTimeout is how long a ping may take before its connection is replaced.
	PingTimeout = 4 * time.Second

	silence = 7 * time.Second // after which the client library pings a connection
)

// Dial connects. TLS is used by rediss, and by redis+sentinel and redis+cluster if trust is not nil.
// The error is the cause of the context if that ends first.
func Dial(ctx context.Context, t Target, trust *tls.Config) (rueidis.Client, error) {
	type result struct {
		client rueidis.Client
		err    error
	}
	dialed := make(chan result, 1)
	go func() {
		c, err := rueidis.NewClient(option(t, trust))
		dialed <- result{c, err}
	}()
	select {
	case r := <-dialed:
		return r.client, r.err
	case <-ctx.Done():
		go func() { // dialing ends by its own timeout
			if r := <-dialed; r.err == nil {
				r.client.Close()
			}
		}()
		return nil, context.Cause(ctx)
	}
}

func option(t Target, trust *tls.Config) rueidis.ClientOption {
	c := rueidis.ClientOption{
		InitAddress:       t.Addresses,
		Username:          t.User,
		Password:          t.Password,
		SelectDB:          t.DB,
		ClientName:        "bide",
		ClientSetInfo:     rueidis.DisableClientSetInfo,
		Dialer:            net.Dialer{Timeout: DialTimeout - 500*time.Millisecond, KeepAlive: silence},
		ConnWriteTimeout:  PingTimeout,
		DisableCache:      true,
		DisableRetry:      true, // what may be repeated is decided by the caller
		AlwaysPipelining:  true, // notices a cut connection before the next call does
		PipelineMultiplex: -1,   // one connection, so that an idle one costs one ping
		TLSConfig:         trust,
	}
	switch t.Scheme {
	case "redis":
		c.TLSConfig = nil
		c.ForceSingleClient = true
	case "rediss":
		c.ForceSingleClient = true
		if c.TLSConfig == nil {
			host, _, _ := net.SplitHostPort(t.Addresses[0])
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
			MasterSet:               t.Primary,
			Dialer:                  c.Dialer,
			TLSConfig:               trust,
			TopologyRefreshInterval: 5 * time.Second, // finds a failover whose notice was lost
		}
	case "redis+cluster":
		c.ClusterOption.ShardsRefreshInterval = time.Minute
	}
	return c
}

// ParseInfo reads the answer to INFO.
func ParseInfo(text string) map[string]string {
	info := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[name] = value
		}
	}
	return info
}
