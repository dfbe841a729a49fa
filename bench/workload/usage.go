// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"runtime"
	"time"

	"github.com/bidemq/bide/bench/result"
	"github.com/bidemq/bide/bench/server"
	"github.com/bidemq/bide/bench/system"
)

// usage of everything since its start.
type usage struct {
	at             time.Time
	client, server time.Duration // CPU
	redis          server.Info
	memory         runtime.MemStats // of this process
}

func (b *bench) usage(ctx context.Context) (u usage, err error) {
	runtime.ReadMemStats(&u.memory)
	if u.client, err = server.OwnCPU(); err != nil {
		return u, err
	}
	foreign, err := b.host.CPU(server.Client)
	if err != nil {
		return u, err
	}
	u.client += foreign
	if u.server, err = b.host.CPU(server.Server); err != nil {
		return u, err
	}
	if b.host.HasRedis() {
		if u.redis, err = b.host.Redis(ctx); err != nil {
			return u, err
		}
	}
	u.at = time.Now()
	return u, nil
}

// perMessage enters what n messages cost since an earlier usage.
func (b *bench) perMessage(ctx context.Context, since usage, n int, metrics map[string]float64) error {
	u, err := b.usage(ctx)
	if err != nil || n == 0 {
		return err
	}
	micros := func(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) / float64(n) }
	metrics[result.ClientCPU] = micros(u.client - since.client)
	metrics[result.ServerCPU] = micros(u.server - since.server)
	if _, foreign := b.system.(system.Foreign); !foreign {
		metrics[result.Allocs] = float64(u.memory.Mallocs-since.memory.Mallocs) / float64(n)
		metrics[result.AllocBytes] = float64(u.memory.TotalAlloc-since.memory.TotalAlloc) / float64(n)
	}
	if b.host.HasRedis() {
		metrics[result.Commands] = float64(u.redis.Commands-since.redis.Commands) / float64(n)
		metrics[result.Reads] = float64(u.redis.Reads-since.redis.Reads) / float64(n)
	}
	return nil
}

// perSecond enters what was used per second since an earlier usage.
func (b *bench) perSecond(ctx context.Context, since usage, metrics map[string]float64) error {
	u, err := b.usage(ctx)
	if err != nil {
		return err
	}
	took := u.at.Sub(since.at)
	metrics[result.IdleClient] = 100 * float64(u.client-since.client) / float64(took)
	metrics[result.IdleServer] = 100 * float64(u.server-since.server) / float64(took)
	if b.host.HasRedis() {
		metrics[result.IdleRedis] = float64(u.redis.Commands-since.redis.Commands) / took.Seconds()
		metrics[result.IdleReads] = float64(u.redis.Reads-since.redis.Reads-1) / took.Seconds() // one was ours
	}
	return nil
}
