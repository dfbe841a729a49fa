// SPDX-License-Identifier: Apache-2.0

package report

import "github.com/bidemq/bide/bench/result"

// figure is what a workload is judged by; it gets a chart and takes part in comparisons.
type figure struct {
	workload string
	metric   string
	title    string
	unit     string
	lower    bool // is better
	log      bool // scale of the chart, for what differs by more than a factor of fifty
}

var figures = []figure{
	{workload: "W1-16", metric: result.Rate, title: "enqueued one by one, 16 producers", unit: "messages/s"},
	{workload: "W1-512", metric: result.Rate, title: "enqueued one by one, 512 producers", unit: "messages/s"},
	{workload: "W1-batch", metric: result.Rate, title: "enqueued in batches of 100, 16 producers", unit: "messages/s"},
	{workload: "W2", metric: result.Rate, title: "drained, 64 handlers", unit: "messages/s"},
	{workload: "W3-16", metric: result.Rate, title: "end to end, 16 producers, 64 handlers", unit: "messages/s"},
	{workload: "W3-512", metric: result.Rate, title: "end to end, 512 producers, 64 handlers", unit: "messages/s"},
	{workload: "W4", metric: result.LagP99, title: "lag of 99 % of the messages, at most", unit: "ms", lower: true, log: true},
	{workload: "W4b", metric: result.BurstLast, title: "10,000 messages due at once: from due to the last", unit: "ms", lower: true, log: true},
	{workload: "W5", metric: result.Memory, title: "memory of the server per waiting message of 256 bytes", unit: "bytes", lower: true},
	{workload: "W5", metric: result.Disk, title: "length of files per waiting message of 256 bytes", unit: "bytes", lower: true},
	{workload: "W6", metric: result.IdleRedis, title: "ten idle queues: commands that Redis executes", unit: "/s", lower: true, log: true},
	{workload: "W6", metric: result.IdleClient, title: "ten idle queues: CPU of the consumer", unit: "% of a core", lower: true, log: true},
}

// column of the table of a workload.
type column struct {
	metric, title string
	sum           bool // over the repetitions, instead of their median: a single lost message counts
}

// columns in their order; a table has those that something was measured for.
var columns = []column{
	{metric: result.Rate, title: "messages/s"},
	{metric: result.LagP50, title: "lag p50, ms"},
	{metric: result.LagP99, title: "lag p99, ms"},
	{metric: result.LagMax, title: "lag max, ms"},
	{metric: result.LagMin, title: "lag min, ms"},
	{metric: result.BurstFirst, title: "due to first, ms"},
	{metric: result.BurstLast, title: "due to last, ms"},
	{metric: result.Memory, title: "memory, bytes"},
	{metric: result.Disk, title: "length of files, bytes"},
	{metric: result.Allocated, title: "set aside on disk, bytes"},
	{metric: result.IdleRedis, title: "Redis commands/s"},
	{metric: result.IdleReads, title: "Redis reads/s"},
	{metric: result.IdleServer, title: "server CPU, %"},
	{metric: result.IdleClient, title: "client CPU, %"},
	{metric: result.ClientCPU, title: "client CPU, µs/message"},
	{metric: result.ServerCPU, title: "server CPU, µs/message"},
	{metric: result.Commands, title: "Redis commands/message"},
	{metric: result.Reads, title: "Redis reads/message"},
	{metric: result.Allocs, title: "client allocations/message"},
	{metric: result.AllocBytes, title: "client bytes allocated/message"},
	{metric: result.Goroutines, title: "client goroutines"},
	{metric: result.Lost, title: "lost", sum: true},
	{metric: result.Doubled, title: "doubled", sum: true},
	{metric: result.EarlyShare, title: "early, share"},
}
