// SPDX-License-Identifier: Apache-2.0

package bide

import (
	"fmt"
	"time"
)

// drain ends a run whose context has ended.
func (r *run) drain() error {
	defer r.endClaims()
	defer r.endSettles()
	defer r.endHandlers(ErrShutdown)
	r.mu.Lock()
	r.quiet = make(chan struct{})
	r.giveBack(time.Now())
	r.changed()
	r.mu.Unlock()

	if !r.isQuiet(r.config.DrainTimeout) {
		r.endHandlers(ErrShutdown)
		r.endClaims()
		r.isQuiet(r.config.Grace)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running > 0 || r.settling > 0 || r.claiming > 0 {
		return fmt.Errorf("bide: drained with %d handlers still running, %d messages not settled and %d claims not answered",
			r.running, r.settling, r.claiming)
	}
	return nil
}

// isQuiet waits until nothing is under way, for d at most.
func (r *run) isQuiet(d time.Duration) bool {
	timer := time.NewTimer(max(d, 0))
	defer timer.Stop()
	select {
	case <-r.quiet:
		return true
	case <-timer.C:
		return false
	}
}
