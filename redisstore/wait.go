// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/bidemq/bide/storage"
)

// Wait implements [storage.Engine]. A process is entered as one who waits in the script of the
// claim that found too little, so that nothing is missed in between; the first Wait on a queue
// enters it by a script of its own. While the server cannot be reached Wait sleeps on, and reports
// every scope when it is back. R8
func (s *Store) Wait(ctx context.Context, scopes []storage.Scope, d time.Duration) ([]int, error) {
	names := make([]string, 0, len(scopes))
	of := make([]int, 0, len(scopes)) // the scopes of those names
	for i := range scopes {
		if err := scopes[i].Check(); err != nil {
			return nil, err
		}
		names = s.scopeNames(names, &scopes[i])
		for len(of) < len(names) {
			of = append(of, i)
		}
	}
	found, err := s.wait(ctx, names, d)
	var ready []int
	for k, name := range names {
		if slices.Contains(found, name) && (len(ready) == 0 || ready[len(ready)-1] != of[k]) {
			ready = append(ready, of[k])
		}
	}
	return ready, err
}

// scopeNames appends what is watched for a scope: in each shard that may have something of it.
func (s *Store) scopeNames(names []string, scope *storage.Scope) []string {
	sp := s.spreadOf(scope.Queue)
	if sp == nil {
		return append(names, s.watches.name(scope))
	}
	l := sp.now()
	for _, i := range l.shardsOf(scope) {
		in := *scope
		in.Queue = l.shards[i].name
		names = append(names, s.watches.name(&in))
	}
	return names
}

func (s *Store) wait(ctx context.Context, queues []string, d time.Duration) ([]string, error) {
	if err := s.open(ctx); err != nil {
		return nil, err
	}
	end := time.Now().Add(min(d, 365*24*time.Hour))
	s.listen()
	changes := s.watches.join(queues)
	defer s.watches.leave(changes)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		ready, absent, comeback := s.watches.look(queues)
		if len(ready) > 0 {
			return ready, nil
		}
		if !time.Now().Before(end) {
			return nil, nil
		}
		if len(absent) > 0 {
			if err := s.enter(ctx, absent, end); err != nil {
				return nil, err
			}
			continue
		}
		wake := end
		if !comeback.IsZero() && comeback.Before(wake) {
			wake = comeback
		}
		timer.Reset(time.Until(wake))
		select {
		case <-changes:
		case <-timer.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-s.life.Done():
			return nil, fmt.Errorf("redisstore: wait: %w", storage.ErrClosed)
		}
	}
}

// enter registers this process as one who waits for some queues, until an instant.
func (s *Store) enter(ctx context.Context, queues []string, end time.Time) error {
	within, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	errs := make([]error, len(queues))
	var others sync.WaitGroup
	for i, q := range queues[1:] {
		others.Go(func() { errs[1+i] = s.enterOne(within, q) })
	}
	errs[0] = s.enterOne(within, queues[0])
	others.Wait()
	if err := cmp.Or(errs...); err != nil && (within.Err() == nil || ctx.Err() != nil) { // else the time of the wait is over
		return err
	}
	return nil
}

func (s *Store) enterOne(ctx context.Context, queue string) error {
	b := s.watches.begin(queue)
	if b.self == "" {
		return nil // notices cannot be heard at the moment
	}
	if _, part := cutPart(queue); part { // which only a claim can tell what is in
		s.watches.something(queue)
		return nil
	}
	// On a connection that has died without a word the answer never comes. A Wait has to hear of the
	// notices meanwhile, which have a connection of their own.
	limited, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	m, err := s.run(limited, watchScript, s.shardOf(queue), "", b.self, decimal(length(pollEvery)))
	if errors.Is(err, storage.ErrUnavailable) || limited.Err() != nil && ctx.Err() == nil {
		s.watches.postpone(queue)
		return nil
	}
	if _, ok := errors.AsType[*layoutError](err); ok { // which the claim learns
		s.watches.something(queue)
		return nil
	}
	if err != nil {
		return err
	}
	told, err := m.AsInt64()
	if err != nil {
		return fmt.Errorf("redisstore: queue %q: %w", queue, &ScriptError{"watch", err})
	}
	if told == 0 || s.watches.sooner(queue, time.Duration(told)*time.Millisecond) {
		s.watches.something(queue)
		return nil
	}
	s.watches.entered(b, told)
	return nil
}

// pass sends the next process to a queue whose notice this one got, and has not followed with a
// claim: the caller that waited may have gone.
func (s *Store) pass(queue string) {
	_, err := s.run(s.life, watchScript, s.shardOf(queue), "", "", decimal(length(pollEvery)))
	if err = ignoreLayout(err); err != nil && s.life.Err() == nil { // who has changed the layout has told everybody
		s.options.Logger.Warn("could not pass on a notice", "queue", queue, "error", err)
	}
}
