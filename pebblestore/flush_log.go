// SPDX-License-Identifier: Apache-2.0

package pebblestore

import (
	"strconv"
	"strings"
)

// flushBytes is how much log Close leaves to the next Open to replay, and how much it leaves on the
// disk that is not needed.
const flushBytes = 1 << 20

// flush writes to tables what only the log and the memory have, and says whether it did: tables take
// less room, and need no replay.
func (s *Store) flush() bool {
	if s.guard.failure() != nil {
		return false
	}
	if m := s.db.Metrics(); m.WAL.PhysicalSize+m.WAL.ObsoletePhysicalSize < flushBytes {
		return false
	}
	done := make(chan bool, 1)
	go func() { // which may hang in Pebble if the disk fails
		flushed, err := s.db.AsyncFlush()
		if err == nil {
			select {
			case <-flushed:
			case <-s.guard.frozen:
			}
		}
		done <- err == nil
	}()
	select {
	case ok := <-done:
		return ok && s.guard.failure() == nil
	case <-s.guard.frozen:
		return false
	}
}

// removeLogs removes the logs that Pebble keeps to write the next ones over them. After a flush, and
// once Pebble is closed, all but the newest are such. One that cannot be removed is left to the next
// Open.
func (s *Store) removeLogs() {
	names, err := s.guard.List(s.dir)
	if err != nil {
		return
	}
	for _, name := range names {
		digits, isLog := strings.CutSuffix(name, ".log")
		if n, err := strconv.ParseUint(digits, 10, 64); isLog && err == nil && n < s.newestLog.Load() {
			_ = s.guard.Remove(s.guard.PathJoin(s.dir, name))
		}
	}
}
