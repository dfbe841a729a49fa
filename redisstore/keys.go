// SPDX-License-Identifier: Apache-2.0

package redisstore

import "cmp"

// defaultNamespace is what stores have in common that name none.
const defaultNamespace = "default"

// structures are the keys of a queue, in the order in which queue.lua names them.
var structures = [...]string{
	"meta", "records", "places", "leases", "expiries", "windows", "dead", "names", "waiters",
	"keys", "members", "keyed", "turns", "heads", "sizes", "idle", "done", "untold",
}

// plainStructures are how many of them a queue without keys, bounds and retention has.
const plainStructures = 9

// queueKeys returns the keys of a queue. They share a hash tag, so that a Cluster keeps them
// together. Each shard of a queue has keys, and a tag, of its own, see shardTag.
func queueKeys(namespace, queue string) []string {
	queue, i := cutShard(queue)
	prefix := "bide:{" + shardTag(namespace+"/"+queue+"/", i) + "}:"
	keys := make([]string, len(structures))
	for i, s := range structures {
		keys[i] = prefix + s
	}
	return keys
}

// listKey is the sorted set of all names of queues. It lives in another slot than the queues.
func listKey(namespace string) string { return "bide:{" + namespace + "}:queues" }

// QueueKeys returns the names of the keys that a queue may have, for tools that look at them from
// outside: docs/redis-layout.md says what they hold. An empty namespace is "default". Of a queue that is
// spread over shards these are the keys of the first.
func QueueKeys(namespace, queue string) []string {
	return queueKeys(cmp.Or(namespace, defaultNamespace), queue)
}

// ShardKeys is QueueKeys for all shards that may hold anything, those that the queue is leaving included. Which
// these are is known by what stands in the field v of the first of QueueKeys, "" if there is none.
func ShardKeys(namespace, queue, v string) ([]string, error) {
	l, err := parseLayout(queue, v)
	if err != nil {
		return nil, err
	}
	var keys []string
	for _, at := range l.shards {
		keys = append(keys, queueKeys(cmp.Or(namespace, defaultNamespace), at.name)...)
	}
	return keys, nil
}
