// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"time"

	"github.com/bidemq/bide/bench/result"
	"github.com/bidemq/bide/bench/system"
)

// far is when messages are due that only wait.
const far = 24 * time.Hour

// sizeLeast is how many messages W5 has, so that what is there before does not count; more where that
// takes no longer than other workloads.
const sizeLeast = 20_000

// size is W5: what a message takes while it waits for its time, in the memory of a server and, after
// everything but the servers was closed, on the disk.
func size(ctx context.Context, b *bench) (map[string]float64, error) {
	if err := b.warm(ctx, fillers); err != nil {
		return nil, err
	}
	memory, err := b.host.Memory(ctx)
	if err != nil {
		return nil, err
	}
	disk, allocated, err := b.host.Disk()
	if err != nil {
		return nil, err
	}
	n := min(b.Messages, sizeLeast)
	if b.spec.Batch {
		n = max(n, b.backlog())
	}
	if err := b.fill(ctx, n, system.Due{First: time.Now().Add(far), Apart: time.Second}); err != nil {
		return nil, err
	}
	metrics := map[string]float64{result.Messages: float64(n)}
	if memory > 0 {
		after, err := b.host.Memory(ctx)
		if err != nil {
			return nil, err
		}
		metrics[result.Memory] = float64(after-memory) / float64(n)
	}
	if err := b.close(); err != nil {
		return nil, err
	}
	length, blocks, err := b.host.Disk()
	if err != nil {
		return nil, err
	}
	if length > disk {
		metrics[result.Disk] = float64(length-disk) / float64(n)
		metrics[result.Allocated] = float64(blocks-allocated) / float64(n)
	}
	return metrics, nil
}
