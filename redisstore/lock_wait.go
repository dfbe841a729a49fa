// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"strconv"
	"strings"
	"sync"
)

// lockWaits are the calls of this process that wait for locks.
type lockWaits struct {
	mu    sync.Mutex
	count int
	calls map[string]*lockWait // by id
}

// lockWait is one Acquire that waits.
type lockWait struct {
	id    string
	woken chan struct{} // of capacity one, told of a release
}

func (l *lockWaits) join() *lockWait {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count++
	w := &lockWait{id: strconv.Itoa(l.count), woken: make(chan struct{}, 1)}
	l.calls[w.id] = w
	return w
}

func (l *lockWaits) leave(w *lockWait) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.calls, w.id)
}

// notice takes a word of lock.lua, "lock id", and says whether it was one.
func (l *lockWaits) notice(text string) bool {
	id, ok := strings.CutPrefix(text, "lock ")
	if !ok {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if w := l.calls[id]; w != nil {
		w.wake()
	}
	return true
}

// again lets all calls ask again: notices may have been lost, or are heard from here on.
func (l *lockWaits) again() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.calls {
		w.wake()
	}
}

func (w *lockWait) wake() {
	select {
	case w.woken <- struct{}{}:
	default:
	}
}

// heard takes a notice of whatever kind.
func (s *Store) heard(text string) {
	if !s.lockWaits.notice(text) {
		s.watches.notice(text)
	}
}
