// SPDX-License-Identifier: Apache-2.0

package pebblestore

import (
	"sync"

	"github.com/cockroachdb/pebble/v2"
)

// scheduler lets Pebble compact as much at a time as it wants to. Unlike Pebble's own it looks for work
// when something has happened and never by the clock, so that an idle store sleeps.
type scheduler struct {
	db   pebble.DBForCompaction
	poke chan struct{}
	stop chan struct{}
	done chan struct{}

	mu      sync.Mutex
	running int
	refused bool // somebody was, since the latest offer
	over    bool
}

func newScheduler() *scheduler {
	return &scheduler{poke: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{})}
}

// Register implements [pebble.CompactionScheduler].
func (s *scheduler) Register(_ int, db pebble.DBForCompaction) {
	s.db = db
	go func() {
		defer close(s.done)
		for {
			select {
			case <-s.poke:
				s.grant()
			case <-s.stop:
				return
			}
		}
	}()
}

// Unregister implements [pebble.CompactionScheduler]. No call of the database is under way when it
// returns, and none follows.
func (s *scheduler) Unregister() {
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
	close(s.stop)
	<-s.done
}

// grant offers what may run to what waits. Only one goroutine calls it.
func (s *scheduler) grant() {
	for s.reserve() {
		if waiting, _ := s.db.GetWaitingCompaction(); waiting && s.db.Schedule(s) {
			continue
		}
		if !s.giveBack() {
			return
		}
	}
}

func (s *scheduler) reserve() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over || s.running >= s.db.GetAllowedWithoutPermission() {
		s.refused = true
		return false
	}
	s.running++
	return true
}

// giveBack ends what reserve began, and says whether somebody was refused meanwhile.
func (s *scheduler) giveBack() (refused bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running--
	refused, s.refused = s.refused, false
	return refused
}

// TrySchedule implements [pebble.CompactionScheduler].
func (s *scheduler) TrySchedule() (bool, pebble.CompactionGrantHandle) {
	if !s.reserve() {
		return false, nil
	}
	return true, s
}

// UpdateGetAllowedWithoutPermission implements [pebble.CompactionScheduler].
func (s *scheduler) UpdateGetAllowedWithoutPermission() {
	select {
	case s.poke <- struct{}{}:
	default:
	}
}

// Done implements [pebble.CompactionGrantHandle]: the compaction has ended.
func (s *scheduler) Done() {
	s.giveBack()
	s.UpdateGetAllowedWithoutPermission()
}

// Started implements [pebble.CompactionGrantHandle].
func (*scheduler) Started() {}

// MeasureCPU implements [pebble.CompactionGrantHandle].
func (*scheduler) MeasureCPU(pebble.CompactionGoroutineKind) {}

// CumulativeStats implements [pebble.CompactionGrantHandle].
func (*scheduler) CumulativeStats(pebble.CompactionGrantHandleStats) {}
