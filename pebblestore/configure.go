// SPDX-License-Identifier: Apache-2.0

package pebblestore

import (
	"context"
	"fmt"
	"math"

	"github.com/bidemq/bide/storage"
)

// Configure implements [storage.Admin].
func (s *Store) Configure(ctx context.Context, queue string, e storage.ConfigEdit) (storage.QueueConfig, error) {
	if err := check(storage.CheckQueue(queue), e.Check()); err != nil {
		return storage.QueueConfig{}, wrap("configure", queue, err)
	}
	e = ownEdit(e)
	var config storage.QueueConfig
	err := s.do(ctx, func(t *txn) error {
		return t.still(queue, func(c *call) error {
			err := c.configure(e)
			config = c.config
			return err
		})
	})
	if err != nil {
		return storage.QueueConfig{}, wrap("configure", queue, err)
	}
	return config, nil
}

// ownEdit is an edit that shares nothing with the caller's.
func ownEdit(e storage.ConfigEdit) storage.ConfigEdit {
	own(&e.Paused)
	own(&e.ExpireIn)
	own(&e.MaxDeliveries)
	own(&e.Shards)
	own(&e.Ordered)
	own(&e.KeyLimit)
	own(&e.MinBatch)
	own(&e.Linger)
	own(&e.KeyIdle)
	own(&e.MaxLen)
	own(&e.MaxPerKey)
	own(&e.Overflow)
	own(&e.RetainFor)
	own(&e.RetainCount)
	own(&e.RetainBytes)
	own(&e.DeadFor)
	own(&e.DeadCount)
	own(&e.TellDead)
	return e
}

func own[T any](p **T) {
	if *p != nil {
		*p = new(**p)
	}
}

func (c *call) configure(e storage.ConfigEdit) error {
	if e == (storage.ConfigEdit{}) {
		return nil
	}
	config, err := e.Apply(c.config)
	if err != nil {
		return err
	}
	before := c.config
	if config.Ordered != before.Ordered && c.keys > 0 {
		return fmt.Errorf("order cannot change while messages with keys wait or are leased: %w", storage.ErrConflict)
	}
	c.keep()
	c.mark()
	c.config = config
	c.sooner = true // R15
	if config.KeyLimit == before.KeyLimit && config.MinBatch == before.MinBatch && config.Linger == before.Linger {
		return nil
	}
	c.replace(math.MaxInt64)
	return c.stepPass(storage.Sweep)
}
