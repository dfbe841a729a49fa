// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"strings"

	"github.com/bidemq/bide/memstore"
	"github.com/bidemq/bide/pebblestore"
	"github.com/bidemq/bide/redisstore"
	"github.com/bidemq/bide/storage"
)

// openStore opens the engine that a URL names.
func openStore(ctx context.Context, address string, log *slog.Logger) (storage.Engine, error) {
	scheme, rest, found := strings.Cut(address, ":")
	if !found {
		return nil, invalid("store %q is not a URL, say pebble:%s or redis://%s", address, address, address)
	}
	switch scheme = strings.ToLower(scheme); scheme {
	case "mem":
		if rest != "" {
			return nil, invalid("store %q: mem: takes nothing more", address)
		}
		return memstore.New(memstore.Options{}), nil
	case "pebble":
		return openPebble(rest, log)
	case "redis", "rediss", "redis+unix", "redis+sentinel", "redis+cluster":
		return redisstore.OpenWith(ctx, scheme+":"+rest, redisstore.Options{Logger: log})
	default:
		return nil, invalid("store %q: scheme %q is not one of pebble, mem, redis, rediss, redis+unix, redis+sentinel, redis+cluster", address, scheme)
	}
}

// openPebble opens pebble:DIR or pebble:DIR?relaxed=true.
func openPebble(rest string, log *slog.Logger) (storage.Engine, error) {
	dir, query, _ := strings.Cut(rest, "?")
	if absolute, ok := strings.CutPrefix(dir, "///"); ok {
		dir = "/" + absolute
	}
	if dir == "" || strings.HasPrefix(dir, "//") {
		return nil, invalid("store pebble:%s is not pebble:DIR", rest)
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, invalid("store pebble:%s: %v", rest, err)
	}
	options := pebblestore.Options{Logger: log}
	for name := range values {
		switch value := values.Get(name); {
		case name == "relaxed" && value == "true":
			options.Relaxed = true
		case name == "relaxed" && value == "false":
		default:
			return nil, invalid("store pebble:%s: %s=%s is not relaxed=true or relaxed=false", rest, name, value)
		}
	}
	engine, err := pebblestore.Open(dir, options)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", dir, err)
	}
	return engine, nil
}
