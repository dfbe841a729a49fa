// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"fmt"
	"slices"
)

// MaxBindings bounds the queues that are bound to one topic.
const MaxBindings = 1000

// Topics keeps which queues get what is published to a topic. It holds names only: neither a topic
// nor a queue has to exist.
type Topics interface {
	// Topic changes the bindings of a topic in one step and returns all of them, sorted. An empty
	// edit reads them. A topic without bindings is gone. ErrFull means that there would be more than
	// MaxBindings, and that nothing has changed. R17
	Topic(ctx context.Context, topic string, e TopicEdit) (queues []string, err error)

	// Topics lists the names of topics that come after the given one, in order, at most limit of
	// them.
	Topics(ctx context.Context, after string, limit int) ([]string, error)
}

// TopicEdit changes the bindings of a topic. What is bound already, or not bound, stays so.
type TopicEdit struct {
	Bind   []string // queues, at most MaxBindings
	Unbind []string // queues, at most MaxBindings, none of Bind
}

// Check looks at the names, that of the topic included, which is made like that of a queue.
func (e *TopicEdit) Check(topic string) error {
	if err := CheckQueue(topic); err != nil {
		return fmt.Errorf("topic: %w", err)
	}
	if err := checkNumber("number of bindings", max(len(e.Bind), len(e.Unbind)), 0, MaxBindings); err != nil {
		return err
	}
	for _, q := range slices.Concat(e.Bind, e.Unbind) {
		if err := CheckQueue(q); err != nil {
			return err
		}
	}
	for _, q := range e.Unbind {
		if slices.Contains(e.Bind, q) {
			return fmt.Errorf("%w: queue %q is to be bound and unbound", ErrInvalid, q)
		}
	}
	return nil
}

// Empty says whether the edit changes nothing.
func (e *TopicEdit) Empty() bool { return len(e.Bind)+len(e.Unbind) == 0 }

// Edit returns the bindings that sorted ones become. ErrFull means that they are too many.
func (e *TopicEdit) Edit(topic string, bound []string) ([]string, error) {
	all := slices.Concat(bound, e.Bind)
	slices.Sort(all)
	all = slices.DeleteFunc(slices.Compact(all), func(q string) bool { return slices.Contains(e.Unbind, q) })
	if len(all) > MaxBindings {
		return nil, TooManyBindings(topic, len(all))
	}
	return all, nil
}

// TooManyBindings is the error of a topic that would have so many.
func TooManyBindings(topic string, n int) error {
	return fmt.Errorf("%w: topic %q would have %d bindings, at most %d are allowed", ErrFull, topic, n, MaxBindings)
}
