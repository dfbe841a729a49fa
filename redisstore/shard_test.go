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
		if storage.CheckQueue(queue) == nil && ctx.Err() == nil {
			_, err := e.Engine.Configure(ctx, queue, storage.ConfigEdit{Shards: &e.shards})
			return err
		}
		return nil
	}))
	if spread, ok := done.(func() error); ok {
		return spread()
	}
	return nil
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
var notSpread = map[string]string{
	"R03ClaimOrder":           "records of several keys or ids are claimed in the order of each shard",
	"R03Arrival":              "records of several keys or ids are claimed in the order of each shard",
	"R03Limits":               "records of several keys or ids are claimed in the order of each shard",
	"R03PastDueDoesNotPush":   "records of several keys or ids are claimed in the order of each shard",
	"R03KeysBesideKeyless":    "records of several keys or ids are claimed in the order of each shard",
	"R03BusyKeyStarvesNobody": "records of several keys or ids are claimed in the order of each shard",
	"R03Scope":                "records of several keys or ids are claimed in the order of each shard",
	"R03Group":                "records of several keys or ids are claimed in the order of each shard",
	"R14CountsAddUp":          "records of several keys or ids are claimed in the order of each shard",
	"R18Keyless":              "records of several keys or ids are claimed in the order of each shard",
	"R01Enqueue":              "arrival, and so the place among records of the same instant, is that of the shard",
	"R07LastRetry":            "arrival, and so the place among records of the same instant, is that of the shard",
	"R10Edit":                 "arrival, and so the place among records of the same instant, is that of the shard",
	"R19DoneBlocksNoID":       "arrival, and so the place among records of the same instant, is that of the shard",
	"Redrive":                 "arrival, and so the place among records of the same instant, is that of the shard",
	"List":                    "arrival, and so the place among records of the same instant, is that of the shard",
	"ListStates":              "arrival, and so the place among records of the same instant, is that of the shard",
	"R12Refuse":               "bounds and limits of the whole queue are divided over the shards",
	"R12DropOldest":           "bounds and limits of the whole queue are divided over the shards",
	"R12BothBounds":           "bounds and limits of the whole queue are divided over the shards",
	"R12AlwaysFits":           "bounds and limits of the whole queue are divided over the shards",
	"R12Excess":               "bounds and limits of the whole queue are divided over the shards",
	"R19Limits":               "bounds and limits of the whole queue are divided over the shards",
	"R19DeadLimits":           "bounds and limits of the whole queue are divided over the shards",
	"R13ManyIdle":             "each shard works off so many",
	"R11Refuses":              "Ordered cannot change while there are several shards",
	"R08TwoClaimers":          "a process that waits at another shard may be woken for nothing",
	"IdentityTable":           "records of several keys or ids are claimed in the order of each shard",
	"IdentityNewest":          "the sequence is made of that of the shard and its number",
	"R01RoundTrip":            "the sequence is made of that of the shard and its number",
	"IdentityReplace":         "an id names a message together with its key",
	"R20Shards":               "the tests of spread queues hide the number",
	"R11OneAfterTheOther":     "records of several keys or ids are claimed in the order of each shard",
	"UnknownQueue":            "the queue exists, as it is spread before its first call",
}

func TestSpreadEngine(t *testing.T) {
	t.Parallel()
	url := redistest.Shared(t).URL()
	storagetest.RulesBut(t, func(t *testing.T) storage.Engine { return &spreading{Engine: open(t, url), shards: 3} }, notSpread)
}
