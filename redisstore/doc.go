// SPDX-License-Identifier: Apache-2.0

// Package redisstore keeps messages in Redis 6.2 or newer, or Valkey: one server, a primary with
// Sentinel, or a Cluster.
//
// Every call on a queue is one script on the server that holds the queue, which is atomic there. Due
// times, leases and tokens go by the clock of that server, never backwards by small steps (R2). What
// survives a crash is what Redis was told to keep: with appendonly and appendfsync always everything
// that was answered, with everysec (the usual choice) all but the last second, and a failover loses
// what had not reached the replica. Open refuses servers that evict keys, and warns about those that
// keep nothing.
//
// At maxmemory a server refuses to publish ([storage.ErrFull]) and lets everything else happen that
// makes room: claims, settlements, purges.
//
// docs/redis-layout.md describes the keys and the scripts.
package redisstore
