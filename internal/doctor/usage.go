// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"strings"

	"github.com/redis/rueidis"

	"github.com/bidemq/bide/internal/redisconn"
	"github.com/bidemq/bide/redisstore"
)

// samples are how many elements of a key are measured to estimate it.
const samples = 100

// Memory measures what queues take in Redis.
type Memory struct {
	Client    rueidis.Client
	Namespace string
}

// usage is what a queue takes in Redis.
type usage struct {
	bytes   int64
	key     string // the largest
	largest int64  // bytes of it
	waiting int64  // processes that wait for messages
}

// of measures a queue, in all its shards. A server that refuses is passed over.
func (m *Memory) of(ctx context.Context, name string) (u usage, err error) {
	meta := redisstore.QueueKeys(m.Namespace, name)[0]
	layout, err := m.Client.Do(ctx, m.Client.B().Hget().Key(meta).Field("v").Build()).ToString()
	if err != nil && !rueidis.IsRedisNil(err) && !refused(err) {
		return u, err
	}
	keys, err := redisstore.ShardKeys(m.Namespace, name, layout)
	if err != nil {
		return u, err
	}
	for _, key := range keys {
		n, err := m.Client.Do(ctx, m.Client.B().MemoryUsage().Key(key).Samples(samples).Build()).AsInt64()
		if err != nil && !refused(err) {
			return u, err
		}
		u.bytes += n
		if n > u.largest {
			u.key, u.largest = key, n
		}
		if strings.HasSuffix(key, ":waiters") {
			n, err := m.Client.Do(ctx, m.Client.B().Zcard().Key(key).Build()).AsInt64()
			if err != nil && !refused(err) {
				return u, err
			}
			u.waiting = max(u.waiting, n) // who waits does so in every shard
		}
	}
	return u, nil
}

// Room returns how many bytes the servers have left, and what they have in use; 0 and 0 if they do
// not say. Without a limit it is the machine's memory that is left.
func (m *Memory) Room(ctx context.Context) (room, used int64, err error) {
	for _, node := range m.Client.Nodes() {
		s := server{client: node}
		text, err := node.Do(ctx, node.B().Info().Build()).ToString()
		if refused(err) {
			return 0, 0, nil
		}
		if err != nil {
			return 0, 0, err
		}
		s.info = redisconn.ParseInfo(text)
		if s.info["role"] == "slave" {
			continue
		}
		most := s.number("maxmemory")
		if most == 0 {
			most = s.number("total_system_memory")
		}
		room += max(0, int64(most-s.number("used_memory")))
		used += int64(s.number("used_memory"))
	}
	return room, used, nil
}
