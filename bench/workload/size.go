// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"time"

	"github.com/bidemq/bide/bench/result"
)

// far is when messages are due that only wait.
const far = 24 * time.Hour

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
	n := min(b.Messages, max(batchSize, int(float64(b.spec.Backlog)*b.Seconds)))
	n -= n % batchSize
	due := time.Now().Add(far)
	if err := b.fill(ctx, n, func(i int) time.Time { return due.Add(time.Duration(i) * time.Second) }); err != nil {
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
