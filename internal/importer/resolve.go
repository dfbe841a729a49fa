// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"bytes"
	"context"
	"errors"
	"maps"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/storage"
)

// resolve asks the target about entries that an interrupted run may have sent, one by one: they are
// those of one batch.
func (r *run) resolve(ctx context.Context, ready []sending) error {
	for i := range ready {
		s := &ready[i]
		if !s.unsure {
			continue
		}
		rec, err := r.Client.Get(ctx, r.Queue, s.Message.ID)
		switch {
		case errors.Is(err, bide.ErrNotFound): // never stored, or handled: the dedup window knows
		case err != nil:
			return err
		case same(&rec, &s.Message), r.Keep && s.note.phase == intended:
			s.action = Known
		default:
			s.Message.OnLive = storage.Replace
		}
	}
	return nil
}

// same says whether a record is the message. Where the due time was past it is when it was enqueued.
func same(rec *storage.Record, m *bide.Message) bool {
	if !bytes.Equal(rec.Body, m.Body) || !maps.Equal(rec.Headers, m.Headers) {
		return false
	}
	due := storage.DueMilli(m.Due)
	return m.Due.IsZero() || due == rec.FirstDue.UnixMilli() || due <= rec.Enqueued.UnixMilli() && !rec.FirstDue.After(rec.Enqueued)
}
