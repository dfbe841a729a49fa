// SPDX-License-Identifier: Apache-2.0

package redisstore_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/bidemq/bide/internal/redistest"
	"github.com/bidemq/bide/storage"
	"github.com/bidemq/bide/storage/storagetest"
)

// spreading is an engine that spreads every queue from its first call on, and hides that.
type spreading struct {
	storage.Engine
	shards int
	once   sync.Map
}

func (e *spreading) spread(ctx context.Context, queue string) error {
	done, _ := e.once.LoadOrStore(queue, sync.OnceValue(func() error {
		if storage.CheckQueue(queue) != nil || ctx.Err() != nil {
			return nil
		}
		_, err := e.Engine.Configure(ctx, queue, storage.ConfigEdit{Shards: &e.shards})
		return err
	}))
	return done.(func() error)()
}

func (e *spreading) Enqueue(ctx context.Context, now time.Time, queue string, recs []storage.Record) ([]storage.EnqueueResult, error) {
	if err := e.spread(ctx, queue); err != nil {
		return nil, err
	}
	return e.Engine.Enqueue(ctx, now, queue, recs)
}

func (e *spreading) Claim(ctx context.Context, now time.Time, c storage.Claim) (storage.Claimed, error) {
	if err := e.spread(ctx, c.Queue); err != nil {
		return storage.Claimed{}, err
	}
	return e.Engine.Claim(ctx, now, c)
}

func (e *spreading) Stats(ctx context.Context, now time.Time, queue string) (storage.Stats, error) {
	st, err := e.Engine.Stats(ctx, now, queue)
	st.Config.Shards = 0
	return st, err
}

func (e *spreading) Configure(ctx context.Context, queue string, edit storage.ConfigEdit) (storage.QueueConfig, error) {
	_, spread := e.once.Load(queue)
	if !spread && edit != (storage.ConfigEdit{}) {
		edit.Shards = &e.shards
	}
	config, err := e.Engine.Configure(ctx, queue, edit)
	if err == nil && edit.Shards != nil {
		e.once.Store(queue, func() error { return nil })
	}
	config.Shards = 0
	return config, err
}

// notSpread are the rules that a queue of several shards does not keep as a whole, only each shard.
var notSpread = map[string]string{}

func TestSpreadEngine(t *testing.T) {
	t.Parallel()
	url := redistest.Shared(t).URL()
	storagetest.RulesBut(t, func(t *testing.T) storage.Engine { return &spreading{Engine: open(t, url), shards: 3} }, notSpread)
}
