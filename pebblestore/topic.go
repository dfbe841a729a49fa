// SPDX-License-Identifier: Apache-2.0

package pebblestore

import (
	"bytes"
	"context"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/bidemq/bide/storage"
)

// kindTopic is the first byte of the key of a binding, see the package comment.
const kindTopic = 't'

// Topic implements [storage.Topics]. R17
func (s *Store) Topic(ctx context.Context, topic string, e storage.TopicEdit) ([]string, error) {
	if err := e.Check(topic); err != nil {
		return nil, wrap("topic", topic, err)
	}
	e = storage.TopicEdit{Bind: slices.Clone(e.Bind), Unbind: slices.Clone(e.Unbind)}
	answer := make(chan []string, 1)
	err := s.do(ctx, func(t *txn) error {
		bound, err := t.bindings(topic)
		if err != nil {
			return err
		}
		edited, err := e.Edit(topic, bound)
		if err != nil {
			return err
		}
		for _, q := range edited {
			if _, old := slices.BinarySearch(bound, q); !old {
				t.set(idKey(kindTopic, topic, q), nil)
				t.durable = true
			}
		}
		for _, q := range bound {
			if _, left := slices.BinarySearch(edited, q); !left {
				t.del(idKey(kindTopic, topic, q))
				t.durable = true
			}
		}
		answer <- edited
		return nil
	})
	if err != nil {
		return nil, wrap("topic", topic, err)
	}
	return <-answer, nil
}

// bindings returns the queues of a topic, sorted.
func (t *txn) bindings(topic string) ([]string, error) {
	all := prefix(kindTopic, topic)
	var bound []string
	err := t.scan(all, after(all), func(it *pebble.Iterator) (bool, error) {
		bound = append(bound, string(it.Key()[len(all):]))
		return true, nil
	})
	return bound, err
}

// Topics implements [storage.Topics].
func (s *Store) Topics(ctx context.Context, from string, limit int) ([]string, error) {
	if err := storage.CheckLimit(limit); err != nil {
		return nil, wrap("topics", "", err)
	}
	answer := make(chan []string, 1)
	err := s.do(ctx, func(t *txn) error {
		var names []string
		low := []byte{kindTopic}
		if from != "" {
			low = after(prefix(kindTopic, from))
		}
		it, err := t.iter(low, after([]byte{kindTopic}))
		if err != nil {
			return err
		}
		defer func() { _ = it.Close() }()
		for ok := it.First(); ok && len(names) < limit; {
			name, _, _ := bytes.Cut(it.Key()[1:], []byte{0})
			names = append(names, string(name))
			ok = it.SeekGE(after(prefix(kindTopic, names[len(names)-1])))
		}
		answer <- names
		return diskError(it.Error())
	})
	if err != nil {
		return nil, wrap("topics", "", err)
	}
	return <-answer, nil
}
