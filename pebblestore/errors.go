// SPDX-License-Identifier: Apache-2.0

package pebblestore

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/cockroachdb/pebble/v2"

	"github.com/bidemq/bide/storage"
)

// diskError gives an error of Pebble or of the file system its category.
func diskError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, storage.ErrFormat), errors.Is(err, storage.ErrUnavailable), errors.Is(err, storage.ErrFull):
		return err
	case pebble.IsCorruptionError(err):
		return fmt.Errorf("%w: %w", storage.ErrFormat, err)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%w: %w", storage.ErrFull, err)
	default:
		return fmt.Errorf("%w: %w", storage.ErrUnavailable, err)
	}
}

// wrap names the operation that failed. Context errors pass through untouched.
func wrap(op, queue string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case queue == "":
		return fmt.Errorf("pebblestore: %s: %w", op, err)
	default:
		return fmt.Errorf("pebblestore: %s %q: %w", op, queue, err)
	}
}
