// SPDX-License-Identifier: Apache-2.0

package bide

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/bidemq/bide/storage"
)

// Keys counts the keys of a queue that have a message waiting or running, at most f.Limit of them. By
// name, 0 is all of them; in the other orders 0 is 200, and storage.MaxBatch the most. What a call
// costs does not grow with the number of keys. The loop ends with the first error.
func (c *Client) Keys(ctx context.Context, queue string, f storage.KeyFilter) iter.Seq2[storage.KeyStats, error] {
	return func(yield func(storage.KeyStats, error) bool) {
		left := limit(f.Limit)
		for {
			f.Limit = left.step()
			if f.By != storage.ByName && left > 0 {
				f.Limit = int(left) // there is no next page
			}
			keys, err := c.engine.Keys(ctx, time.Time{}, queue, f)
			if err != nil {
				yield(storage.KeyStats{}, wrap(err, "keys of", queue))
				return
			}
			for _, k := range keys {
				if !yield(k, nil) || left.spend(1) {
					return
				}
			}
			if len(keys) < f.Limit || f.By != storage.ByName || f.Key != "" {
				return
			}
			f.After = keys[len(keys)-1].Key
		}
	}
}

// KeyStats counts one key, also one that has no message: it has zero of everything then.
func (c *Client) KeyStats(ctx context.Context, queue, key string) (storage.KeyStats, error) {
	if key == "" {
		err := fmt.Errorf("%w: the key is empty", ErrInvalid)
		return storage.KeyStats{}, wrap(err, "keys of", queue)
	}
	for k, err := range c.Keys(ctx, queue, storage.KeyFilter{Key: key, Limit: 1}) {
		return k, err
	}
	return storage.KeyStats{Key: key}, nil
}
