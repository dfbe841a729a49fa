// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"context"
	"maps"
	"slices"

	"github.com/bidemq/bide/storage"
)

// topics are the bindings of each topic that has any, sorted.
type topics map[string][]string

// Topic implements [storage.Topics]. R17
func (s *Store) Topic(ctx context.Context, topic string, e storage.TopicEdit) ([]string, error) {
	if err := e.Check(topic); err != nil {
		return nil, err
	}
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	bound, err := e.Edit(topic, s.topics[topic])
	switch {
	case err != nil:
		return nil, err
	case len(bound) == 0:
		delete(s.topics, topic)
	default:
		s.topics[topic] = bound
	}
	return slices.Clone(bound), nil
}

// Topics implements [storage.Topics].
func (s *Store) Topics(ctx context.Context, after string, limit int) ([]string, error) {
	if err := storage.CheckLimit(limit); err != nil {
		return nil, err
	}
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	names := slices.Sorted(maps.Keys(s.topics))
	i, found := slices.BinarySearch(names, after)
	if found {
		i++
	}
	return names[i:min(i+limit, len(names))], nil
}
