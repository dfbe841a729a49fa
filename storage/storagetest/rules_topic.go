// SPDX-License-Identifier: Apache-2.0

package storagetest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/storage"
)

var topicRules = []rule{
	{name: "R17Bindings", test: r17Bindings},
	{name: "R17Bounded", test: r17Bounded},
	{name: "R17AtOnce", test: r17AtOnce},
	{name: "R17Listed", test: r17Listed},
	{name: "R17Invalid", test: r17Invalid},
}

// topic edits the topic of the harness and fails unless these queues are bound then.
func (h *harness) topic(e storage.TopicEdit, want ...string) {
	h.t.Helper()
	got, err := h.engine.Topic(h.ctx(), h.queue, e)
	assert.NoError(h.t, err)
	assert.Equal(h.t, got, want)
}

// R17: bindings are a set; an edit answers with the whole of it, and an empty one reads.
func r17Bindings(t *testing.T, h *harness) {
	h.topic(storage.TopicEdit{})
	assert.True(t, !slices.Contains(h.topics(), h.queue), "reading has made a topic")
	h.topic(storage.TopicEdit{Bind: []string{"mail", "a", "mail", "z:1"}}, "a", "mail", "z:1")
	h.topic(storage.TopicEdit{Bind: []string{"a"}}, "a", "mail", "z:1")
	h.topic(storage.TopicEdit{Bind: []string{"b"}, Unbind: []string{"a", "never"}}, "b", "mail", "z:1")
	h.topic(storage.TopicEdit{}, "b", "mail", "z:1")
	assert.True(t, slices.Contains(h.topics(), h.queue), "the topic is not listed")
	h.topic(storage.TopicEdit{Unbind: []string{"z:1", "mail", "b"}})
	assert.True(t, !slices.Contains(h.topics(), h.queue), "a topic without bindings is listed")
	h.topic(storage.TopicEdit{Unbind: []string{"a"}})
	_, err := h.engine.Topic(h.ctx(), h.queue+".longer", storage.TopicEdit{Bind: []string{"a"}})
	assert.NoError(t, err)
	h.topic(storage.TopicEdit{})
}

// topics are all names.
func (h *harness) topics() []string {
	h.t.Helper()
	var all []string
	for after := ""; ; {
		some, err := h.engine.Topics(h.ctx(), after, 7)
		assert.NoError(h.t, err)
		if len(some) == 0 {
			return all
		}
		all, after = append(all, some...), some[len(some)-1]
	}
}

// R17: a topic has MaxBindings at most; an edit that would make it more changes nothing.
func r17Bounded(t *testing.T, h *harness) {
	all := make([]string, storage.MaxBindings)
	for i := range all {
		all[i] = fmt.Sprintf("q%04d", i)
	}
	h.topic(storage.TopicEdit{Bind: all}, all...)
	_, err := h.engine.Topic(h.ctx(), h.queue, storage.TopicEdit{Bind: []string{"p"}})
	assert.ErrorIs(t, err, storage.ErrFull)
	_, err = h.engine.Topic(h.ctx(), h.queue, storage.TopicEdit{Bind: []string{"p", "r"}, Unbind: []string{"q0000"}})
	assert.ErrorIs(t, err, storage.ErrFull)
	h.topic(storage.TopicEdit{}, all...)
	h.topic(storage.TopicEdit{Bind: []string{"p"}, Unbind: []string{"q0000"}}, append([]string{"p"}, all[1:]...)...)
	h.topic(storage.TopicEdit{Unbind: append([]string{"p"}, all[1:]...)})
}

// R17: edits at the same time lose nothing of each other.
func r17AtOnce(t *testing.T, h *harness) {
	var wg sync.WaitGroup
	var want []string
	for i := range 20 {
		q := fmt.Sprintf("q%02d", i)
		want = append(want, q)
		wg.Go(func() {
			_, err := h.engine.Topic(h.ctx(), h.queue, storage.TopicEdit{Bind: []string{q}, Unbind: []string{"other"}})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	h.topic(storage.TopicEdit{}, want...)
}

// R17: topics are listed by name.
func r17Listed(t *testing.T, h *harness) {
	var want []string
	for i := range 10 {
		want = append(want, fmt.Sprintf("%s.%d", h.queue, i))
		_, err := h.engine.Topic(h.ctx(), want[i], storage.TopicEdit{Bind: []string{"a", "b", "c"}})
		assert.NoError(t, err)
	}
	got, err := h.engine.Topics(h.ctx(), h.queue, 4)
	assert.NoError(t, err)
	assert.Equal(t, got, want[:4])
	all := slices.DeleteFunc(h.topics(), func(name string) bool { return !strings.HasPrefix(name, h.queue) })
	assert.Equal(t, all, want)
}

// R17: what can never work is refused before anything is done.
func r17Invalid(t *testing.T, h *harness) {
	for _, c := range []struct {
		topic string
		edit  storage.TopicEdit
	}{
		{"", storage.TopicEdit{}},
		{"no spaces", storage.TopicEdit{}},
		{h.queue, storage.TopicEdit{Bind: []string{""}}},
		{h.queue, storage.TopicEdit{Unbind: []string{"a\x00b"}}},
		{h.queue, storage.TopicEdit{Bind: []string{"a"}, Unbind: []string{"a"}}},
		{h.queue, storage.TopicEdit{Bind: make([]string, storage.MaxBindings+1)}},
	} {
		_, err := h.engine.Topic(h.ctx(), c.topic, c.edit)
		assert.ErrorIs(t, err, storage.ErrInvalid)
	}
	_, err := h.engine.Topics(h.ctx(), "", 0)
	assert.ErrorIs(t, err, storage.ErrInvalid)
	h.topic(storage.TopicEdit{})
}
