// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"errors"
	"sync"

	"github.com/bidemq/bide"
)

// Start runs consumers until the function that it returns is called, or ctx ends. The function
// waits until they are drained and returns what they ended with. It may be called again.
func Start(ctx context.Context, consumers ...*bide.Consumer) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	errs := make([]error, len(consumers))
	var running sync.WaitGroup
	for i, c := range consumers {
		running.Go(func() { errs[i] = c.Run(ctx) })
	}
	return func() error {
		cancel()
		running.Wait()
		return errors.Join(errs...)
	}
}
