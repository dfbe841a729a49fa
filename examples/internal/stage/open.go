// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"strings"

	"github.com/bidemq/bide/memstore"
	"github.com/bidemq/bide/pebblestore"
	"github.com/bidemq/bide/redisstore"
	"github.com/bidemq/bide/storage"
)

// Open opens the engine that an address names: mem:, redis:// and its relatives, a directory. An
// example changes nothing else to run on another.
func Open(ctx context.Context, address string) (storage.Engine, error) {
	switch {
	case address == "mem:":
		return memstore.New(memstore.Options{}), nil
	case strings.HasPrefix(address, "redis"):
		return redisstore.Open(ctx, address)
	default:
		return pebblestore.Open(strings.TrimPrefix(address, "pebble:"), pebblestore.Options{})
	}
}
