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

func openPebble(rest string, log *slog.Logger) (storage.Engine, error) {
	dir, relaxed, err := parsePebble(rest)
	if err != nil {
		return nil, err
	}
	engine, err := pebblestore.Open(dir, pebblestore.Options{Logger: log, Relaxed: relaxed})
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", dir, err)
	}
	return engine, nil
}

// parsePebble reads DIR or DIR?relaxed=true.
func parsePebble(rest string) (dir string, relaxed bool, err error) {
	dir, query, _ := strings.Cut(rest, "?")
	if absolute, ok := strings.CutPrefix(dir, "///"); ok {
		dir = "/" + absolute
	}
	if dir == "" || strings.HasPrefix(dir, "//") {
		return "", false, invalid("store pebble:%s is not pebble:DIR", rest)
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return "", false, invalid("store pebble:%s: %v", rest, err)
	}
	for name, all := range values {
		switch value := all[0]; {
		case len(all) > 1:
			return "", false, invalid("store pebble:%s: %s is given twice", rest, name)
		case name == "relaxed" && value == "true":
			relaxed = true
		case name == "relaxed" && value == "false":
		default:
			return "", false, invalid("store pebble:%s: %s=%s is not relaxed=true or relaxed=false", rest, name, value)
		}
	}
	return dir, relaxed, nil
}
