// SPDX-License-Identifier: Apache-2.0

package pebblestore

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/bidemq/bide/storage"
)

// change is an edit that owns what it points to.
type change struct {
	due, delay *int64
	priority   *int
	body       []byte
	headers    map[string]string
	setBody    bool
	setHeaders bool
}

func newChange(e storage.Edit) change {
	var ch change
	if e.Due != nil {
		ch.due = new(storage.DueMilli(*e.Due))
	}
	if e.Delay != nil {
		ch.delay = new(millis(*e.Delay))
	}
	if e.Priority != nil {
		ch.priority = new(*e.Priority)
	}
	if e.Body != nil {
		ch.body, ch.setBody = bytes.Clone(*e.Body), true
	}
	if e.Headers != nil {
		ch.headers, ch.setHeaders = maps.Clone(*e.Headers), true
	}
	return ch
}

// Edit implements [storage.Admin]. R10
func (s *Store) Edit(ctx context.Context, now time.Time, queue, id string, e storage.Edit) (storage.Record, error) {
	if err := check(storage.CheckID(id), e.Check(s.maxBody)); err != nil {
		return storage.Record{}, wrap("edit", queue, err)
	}
	ch := newChange(e)
	var edited storage.Record
	err := s.on(ctx, "edit", queue, now, func(c *call) (err error) {
		edited, err = c.edit(id, ch)
		return err
	})
	if err != nil {
		return storage.Record{}, err
	}
	return edited, nil
}

func (c *call) edit(id string, ch change) (storage.Record, error) {
	r, err := c.byID(id)
	if err != nil {
		return storage.Record{}, err
	}
	if r.state == storage.Ready {
		err = c.know(r.key)
	}
	if err != nil {
		return storage.Record{}, err
	}
	if r.state != storage.Ready {
		return storage.Record{}, fmt.Errorf("%q is %s: %w", id, r.state, storage.ErrConflict)
	}
	before, err := c.whole(r)
	if err != nil {
		return storage.Record{}, err
	}
	edited, content := *r, payload{before.Body, before.Headers}
	switch {
	case ch.due != nil:
		edited.due, edited.firstDue = *ch.due, *ch.due
	case ch.delay != nil:
		edited.due = c.now + *ch.delay
		edited.firstDue = edited.due
	}
	if c.config.Ordered && ch.priority != nil && *ch.priority > 0 { // R11
		return storage.Record{}, fmt.Errorf("priority %d in an ordered queue: %w", *ch.priority, storage.ErrInvalid)
	}
	if edited.expired(c.now) {
		return storage.Record{}, fmt.Errorf("%q: %w", id, storage.ErrExpired)
	}
	if ch.priority != nil {
		edited.priority = *ch.priority
	}
	if ch.setBody {
		content.body = ch.body
	}
	if ch.setHeaders {
		content.headers = ch.headers
	}
	c.mark()
	c.unplace(r)
	c.store(kindRecord, edited.seq, &edited, appendPayload(nil, content))
	if edited.stateful {
		c.remember(&edited)
	}
	c.wait(&edited)
	return edited.view(c.now, payload{bytes.Clone(content.body), maps.Clone(content.headers)}), nil
}
