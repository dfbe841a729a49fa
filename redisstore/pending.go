// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"errors"
	"time"

	"github.com/bidemq/bide/storage"
)

var errPending = errors.New("not in this engine yet")

// Keys implements [storage.Admin].
func (s *Store) Keys(context.Context, time.Time, string, storage.KeyFilter) ([]storage.KeyStats, error) {
	return nil, errPending
}

// Told implements [storage.Admin].
func (s *Store) Told(context.Context, string, []storage.DeadID) error { return errPending }
