// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"fmt"

	"github.com/bidemq/bide/storage"
)

// Topic implements [storage.Topics]. R17
func (s *Store) Topic(ctx context.Context, topic string, e storage.TopicEdit) ([]string, error) {
	if err := e.Check(topic); err != nil {
		return nil, err
	}
	args := []string{topic, decimal(storage.MaxBindings)}
	for _, q := range e.Bind {
		args = append(args, q, "1")
	}
	for _, q := range e.Unbind {
		args = append(args, q, "0")
	}
	m, err := s.runApart(ctx, topicScript, s.topicKeys, topic, args...)
	if err != nil {
		return nil, err
	}
	reply, err := m.ToArray()
	if err != nil || len(reply) != 2 {
		return nil, fmt.Errorf("redisstore: topic %q: %w", topic, &ScriptError{topicScript.name, err})
	}
	if n, err := reply[1].AsInt64(); err == nil {
		return nil, fmt.Errorf("redisstore: %w", storage.TooManyBindings(topic, int(n)))
	}
	queues, err := reply[1].AsStrSlice()
	if err != nil {
		return nil, fmt.Errorf("redisstore: topic %q: %w", topic, &ScriptError{topicScript.name, err})
	}
	return queues, nil
}

// Topics implements [storage.Topics].
func (s *Store) Topics(ctx context.Context, after string, limit int) ([]string, error) {
	if err := storage.CheckLimit(limit); err != nil {
		return nil, err
	}
	m, err := s.runApart(ctx, topicsScript, s.topicKeys, "topics", after, decimal(int64(limit)))
	if err != nil {
		return nil, err
	}
	names, err := m.AsStrSlice()
	if err != nil {
		return nil, fmt.Errorf("redisstore: %w", &ScriptError{topicsScript.name, err})
	}
	return names, nil
}
