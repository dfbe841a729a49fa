// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/bidemq/bide/storage"
)

// Queues implements [storage.Admin].
func (s *Store) Queues(ctx context.Context, after string, limit int) ([]string, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := storage.CheckLimit(limit); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isClosed() {
		return nil, fmt.Errorf("memstore: %w", storage.ErrClosed)
	}
	names := slices.Sorted(maps.Keys(s.queues))
	i, found := slices.BinarySearch(names, after)
	if found {
		i++
	}
	return names[i:min(i+limit, len(names))], nil
}

// Stats implements [storage.Admin].
func (s *Store) Stats(ctx context.Context, now time.Time, queue string) (storage.Stats, error) {
	c, err := s.begin(ctx, now, queue)
	if err != nil {
		return storage.Stats{}, err
	}
	defer c.end()
	st := storage.Stats{
		Now:    c.now,
		Config: c.config,
		Leased: int64(c.leased.Len()),
		Dead:   int64(c.dead.Len()),
		Done:   int64(c.done.Len()),
		Keys:   int64(len(c.keys)),
		Total:  c.total,
	}
	for _, w := range c.waiting {
		ready := int64(0)
		w.Scan(func(r *record) bool {
			if r.Due.After(c.now) {
				return false
			}
			ready++
			return true
		})
		st.Ready += ready
		st.Delayed += int64(w.Len()) - ready
		if head, ok := w.Min(); ok && (st.NextDue.IsZero() || head.Due.Before(st.NextDue)) {
			st.NextDue = head.Due
		}
	}
	return st, nil
}

// Get implements [storage.Admin].
func (s *Store) Get(ctx context.Context, now time.Time, queue, id string) (storage.Record, error) {
	c, err := s.begin(ctx, now, queue)
	if err != nil {
		return storage.Record{}, err
	}
	defer c.end()
	r, err := c.byID(id)
	if err != nil {
		return storage.Record{}, err
	}
	return r.view(c.now), nil
}

// byID returns the record that an id means.
func (c *call) byID(id string) (*record, error) {
	if err := storage.CheckID(id); err != nil {
		return nil, err
	}
	if r := c.find(id); r != nil {
		return r, nil
	}
	if f := c.finished[id]; len(f) > 0 {
		return f[len(f)-1], nil
	}
	return nil, fmt.Errorf("%w: %q in queue %q", storage.ErrNotFound, id, c.name)
}

// waitingByID returns the record that an id means if it is delayed or ready. R10
func (c *call) waitingByID(id string) (*record, error) {
	r, err := c.byID(id)
	if err != nil {
		return nil, err
	}
	if r.State != storage.Ready {
		return nil, fmt.Errorf("%w: %q in queue %q is %s", storage.ErrConflict, id, c.name, r.State)
	}
	return r, nil
}

// Edit implements [storage.Admin].
func (s *Store) Edit(ctx context.Context, now time.Time, queue, id string, e storage.Edit) (storage.Record, error) {
	if err := e.Check(s.maxBody); err != nil {
		return storage.Record{}, err
	}
	c, err := s.begin(ctx, now, queue)
	if err != nil {
		return storage.Record{}, err
	}
	defer c.end()
	r, err := c.waitingByID(id)
	if err != nil {
		return storage.Record{}, err
	}
	if c.config.Ordered && e.Priority != nil && *e.Priority > 0 { // R11
		return storage.Record{}, fmt.Errorf("%w: priority %d in an ordered queue", storage.ErrInvalid, *e.Priority)
	}
	changed := *r
	if e.Due != nil {
		changed.Due = time.UnixMilli(storage.DueMilli(*e.Due)).UTC()
		changed.FirstDue = changed.Due
	}
	if e.Delay != nil {
		changed.Due = c.now.Add(storage.Millis(*e.Delay))
		changed.FirstDue = changed.Due
	}
	if changed.ExpireIn > 0 && !changed.Expires().After(c.now) {
		return storage.Record{}, fmt.Errorf("%w: %q would be past its expiry", storage.ErrExpired, id)
	}
	if e.Priority != nil {
		changed.Priority = *e.Priority
	}
	if e.Body != nil {
		changed.Body = bytes.Clone(*e.Body)
	}
	if e.Headers != nil {
		changed.Headers = maps.Clone(*e.Headers)
	}
	c.unplace(r)
	*r = changed
	c.wait(r)
	return r.view(c.now), nil
}

// Cancel implements [storage.Admin].
func (s *Store) Cancel(ctx context.Context, now time.Time, queue, id string, running bool) error {
	c, err := s.begin(ctx, now, queue)
	if err != nil {
		return err
	}
	defer c.end()
	r, err := c.byID(id)
	if err != nil {
		return err
	}
	if r.State != storage.Ready && (!running || r.State != storage.Leased) {
		return fmt.Errorf("%w: %q in queue %q is %s", storage.ErrConflict, id, queue, r.State)
	}
	c.total.Canceled++
	c.drop(r)
	return nil
}

// Configure implements [storage.Admin].
func (s *Store) Configure(ctx context.Context, queue string, e storage.ConfigEdit) (storage.QueueConfig, error) {
	if err := e.Check(); err != nil {
		return storage.QueueConfig{}, err
	}
	c, err := s.lock(ctx, queue)
	if err != nil {
		return storage.QueueConfig{}, err
	}
	defer c.end()
	if e == (storage.ConfigEdit{}) {
		return c.config, nil
	}
	config, err := e.Apply(c.config)
	if err != nil {
		return storage.QueueConfig{}, err
	}
	if config.Ordered != c.config.Ordered && len(c.keys) > 0 {
		return storage.QueueConfig{}, fmt.Errorf("%w: queue %q has messages with keys waiting or leased, their order cannot change", storage.ErrConflict, queue)
	}
	c.keep()
	c.config = config
	for _, g := range c.keys {
		c.place(g)
	}
	c.made = true // R15
	return config, nil
}

// Repair implements [storage.Admin]. Nothing in memory can part from its records, so it finds
// nothing.
func (s *Store) Repair(ctx context.Context, now time.Time, queue string, r storage.Repair) (storage.Repaired, error) {
	if err := r.Check(); err != nil {
		return storage.Repaired{}, err
	}
	c, err := s.begin(ctx, now, queue)
	if err != nil {
		return storage.Repaired{}, err
	}
	defer c.end()
	return storage.Repaired{Checked: len(c.live) + c.dead.Len() + c.done.Len()}, nil
}
