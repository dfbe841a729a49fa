// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/bidemq/bide/storage"
)

// spread is what this process knows about a queue that is spread over shards.
type spread struct {
	queue   string
	turn    atomic.Uint64 // of the shard that the next claim begins with
	claimed claimed

	mu     sync.Mutex
	layout *layout
	config storage.QueueConfig // of the same version
	down   map[int]time.Time   // shards that could not be reached, until when they are left alone
}

// now returns the layout.
func (sp *spread) now() *layout {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	return sp.layout
}

// know notes a layout unless a newer one is known.
func (sp *spread) know(l *layout, c storage.QueueConfig) {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	if sp.layout == nil || l.version >= sp.layout.version {
		sp.layout, sp.config = l, c
	}
}

// ordered says whether the queue keeps the order of keys.
func (sp *spread) ordered() bool {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	return sp.config.Ordered
}

// spreadOf returns what is known about a queue that is spread, nil about every other.
func (s *Store) spreadOf(queue string) *spread {
	if v, ok := s.spreads.Load(queue); ok {
		if sp, ok := v.(*spread); ok {
			return sp
		}
	}
	return nil
}

// spreadFor is spreadOf for a call that a shard has refused because of its layout. By now the queue may have lost
// that: then it has one shard.
func (s *Store) spreadFor(queue string) *spread {
	if sp := s.spreadOf(queue); sp != nil {
		return sp
	}
	return &spread{queue: queue, layout: newLayout(queue, 0, []int{1}), down: map[int]time.Time{}}
}

// layoutOf returns the layout of a queue as far as is known.
func (s *Store) layoutOf(queue string) *layout {
	if sp := s.spreadOf(queue); sp != nil {
		return sp.now()
	}
	return newLayout(queue, 0, []int{1})
}

// know notes the layout of a queue.
func (s *Store) know(queue string, l *layout, c storage.QueueConfig) {
	if l.version == 0 {
		return
	}
	fresh := &spread{queue: queue, layout: l, config: c, down: map[int]time.Time{}}
	if v, ok := s.spreads.LoadOrStore(queue, fresh); ok {
		if sp, ok := v.(*spread); ok {
			sp.know(l, c)
		}
	}
	if len(l.counts) > 1 {
		s.settleLater(queue)
	}
}

// shardOf returns the shard of a name as far as is known.
func (s *Store) shardOf(name string) shard {
	queue, _ := cutShard(name)
	at := shard{name: name}
	if sp := s.spreadOf(queue); sp != nil {
		at.layout = sp.now().text
	}
	return at
}

// layoutError says that a shard has another layout than a call was made for. Nothing was done.
type layoutError struct {
	at     shard
	stored string // as in meta
}

func (e *layoutError) Error() string {
	return fmt.Sprintf("redisstore: queue %q has the layout %q, not %q", e.at.name, e.stored, e.at.layout)
}

// otherLayout reads that from an answer.
func otherLayout(err error, at shard) *layoutError {
	e, ok := rueidis.IsRedisErr(err)
	if !ok {
		return nil
	}
	stored, ok := strings.CutPrefix(e.Error(), "BIDELAYOUT ")
	if !ok && e.Error() != "BIDELAYOUT" {
		return nil
	}
	return &layoutError{at, stored}
}

// tries bounds how often a call begins anew because of the layout, which somebody changes meanwhile.
const tries = 100

// over calls do with the layout of a queue, again as long as a shard turns out to have another one. What
// do has done by then stays done, and do must know.
func (s *Store) over(ctx context.Context, queue string, do func(l *layout) error) error {
	for range tries {
		err := do(s.layoutOf(queue))
		other, ok := errors.AsType[*layoutError](err)
		if !ok {
			return err
		}
		if err := s.learn(ctx, queue, other); err != nil {
			return err
		}
	}
	return fmt.Errorf("redisstore: queue %q: %w: its layout does not stay", queue, storage.ErrUnavailable)
}

// learn takes the layout that a queue has by now, which the first shard knows, and brings the shard that
// had another one up to it. If the first shard has lost it, the newest that anybody knows is the layout.
func (s *Store) learn(ctx context.Context, queue string, other *layoutError) error {
	found, config, err := s.truth(ctx, queue)
	if err != nil {
		return err
	}
	theirs, err := parseLayout(queue, other.stored)
	if err != nil {
		return err
	}
	newest := found
	if sp := s.spreadOf(queue); sp != nil {
		sp.mu.Lock()
		if sp.layout.version > newest.version {
			newest, config = sp.layout, sp.config
		}
		sp.mu.Unlock()
	}
	if theirs.version > newest.version {
		at := shard{name: other.at.name, layout: other.stored}
		_, c, _, err := s.configureAt(ctx, at, "0", storage.QueueConfig{}, "", "")
		if err != nil {
			return ignoreLayout(err)
		}
		newest, config = theirs, c
	}
	if newest.version > found.version {
		if err := s.stamp(ctx, shard{name: queue, layout: found.stored}, newest, config); err != nil {
			return ignoreLayout(err)
		}
	}
	s.know(queue, newest, config)
	if other.at.name != queue && newest.version > 0 && theirs.text != newest.text {
		return ignoreLayout(s.stamp(ctx, shard{name: other.at.name, layout: other.stored}, newest, config))
	}
	return nil
}

// ignoreLayout leaves out that somebody else has changed the layout meanwhile.
func ignoreLayout(err error) error {
	if _, ok := errors.AsType[*layoutError](err); ok {
		return nil
	}
	return err
}

// truth reads the layout of a queue and its configuration from its first shard.
func (s *Store) truth(ctx context.Context, queue string) (*layout, storage.QueueConfig, error) {
	at := s.shardOf(queue)
	for range tries {
		_, config, stored, err := s.configureAt(ctx, at, "0", storage.QueueConfig{}, "", "")
		if other, ok := errors.AsType[*layoutError](err); ok {
			if at.layout = other.stored; other.stored == storedFormat {
				at.layout = ""
			}
			continue
		}
		if err != nil {
			return nil, config, err
		}
		l, err := parseLayout(queue, stored)
		return l, config, err
	}
	return nil, storage.QueueConfig{}, fmt.Errorf("redisstore: queue %q: %w: its layout does not stay", queue, storage.ErrUnavailable)
}

// stamp gives a shard a layout and the configuration that goes with it, if it has the layout that at says.
func (s *Store) stamp(ctx context.Context, at shard, l *layout, c storage.QueueConfig) error {
	at.stamps = true
	_, _, _, err := s.configureAt(ctx, at, "1", c, "", l.text)
	return err
}

// stampAll gives all shards but the first the layout of the queue.
func (s *Store) stampAll(ctx context.Context, l *layout, was string, c storage.QueueConfig) error {
	return l.each(func(i int, at shard) error {
		if i == 0 {
			return nil
		}
		at.layout = was
		for range tries {
			err := s.stamp(ctx, at, l, c)
			other, ok := errors.AsType[*layoutError](err)
			if !ok {
				return err
			}
			has, err := parseLayout("", other.stored)
			if err != nil || has.version >= l.version {
				return err
			}
			at.layout = other.stored
		}
		return nil
	})
}
