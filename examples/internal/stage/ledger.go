// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"fmt"
	"sync"
)

// Ledger counts what happened, by name. Its zero value is empty, and it may be used from many
// goroutines.
type Ledger struct {
	mu      sync.Mutex
	times   map[string]int
	changed chan struct{} // closed by the next Note; nil if nobody waits
}

// Note counts something and says how often that was.
func (l *Ledger) Note(name string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.times == nil {
		l.times = map[string]int{}
	}
	l.times[name]++
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
	return l.times[name]
}

// Times says how often something was noted.
func (l *Ledger) Times(name string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.times[name]
}

// Until waits for n different names, or for the end of ctx.
func (l *Ledger) Until(ctx context.Context, n int) error {
	for {
		l.mu.Lock()
		have := len(l.times)
		if l.changed == nil {
			l.changed = make(chan struct{})
		}
		changed := l.changed
		l.mu.Unlock()
		if have >= n {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("%d of %d were done: %w", have, n, ctx.Err())
		}
	}
}

// Once is an error unless exactly n names were noted, each once.
func (l *Ledger) Once(n int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, times := range l.times {
		if times > 1 {
			return fmt.Errorf("%s was done %d times", name, times)
		}
	}
	if len(l.times) != n {
		return fmt.Errorf("%d were done, %d were to be", len(l.times), n)
	}
	return nil
}
