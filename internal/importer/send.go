// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/storage"
)

// sending is an entry on its way.
type sending struct {
	Entry
	note   note // before
	action Action
	unsure bool // an earlier run may have sent it
}

// sort reads the notes, and tells apart what is known, what is to be sent and what cannot be.
func (r *run) sort(ctx context.Context, entries []Entry) ([]sending, error) {
	ids := make([]string, len(entries))
	for i := range entries {
		ids[i] = entries[i].Message.ID
	}
	found, err := r.notes.read(ctx, ids)
	if err != nil {
		return nil, err
	}
	var ready []sending
	seen := map[string]bool{}
	for i, e := range entries {
		e.Message.DedupFor = r.DedupFor
		e.Message.MaxAttempts = cmp.Or(e.Message.MaxAttempts, r.MaxAttempts)
		if err := e.check(); err != nil {
			r.tell(e, Refuse, err)
			continue
		}
		if seen[ids[i]] {
			r.tell(e, Known, nil)
			continue
		}
		seen[ids[i]] = true
		ready = append(ready, r.classify(e, found[i]))
		if s := &ready[len(ready)-1]; r.DryRun {
			if s.unsure {
				s.action = Ask
			}
			r.tell(s.Entry, s.action, nil)
		}
	}
	return ready, nil
}

func (r *run) classify(e Entry, n note) sending {
	s := sending{Entry: e, note: n, action: Import}
	s.Message.OnLive = storage.Replace
	same := n.print == e.print
	switch n.phase {
	case unsent:
		if r.Keep {
			s.Message.OnLive = storage.Keep
		}
	case done:
		s.action = Update
		if same {
			s.action = Known
		}
	case intended:
		s.unsure = same
		if s.action = Update; same {
			s.action = Import
			s.Message.OnLive = storage.Keep
		}
	case updating:
		s.action, s.unsure = Update, same
	}
	return s
}

// intend notes what is about to be sent.
func (r *run) intend(ctx context.Context, ready []sending) error {
	intents := map[string]note{}
	for _, s := range ready {
		switch {
		case s.action == Known || s.unsure: // noted already
		case s.note.phase == unsent:
			intents[s.Message.ID] = note{intended, s.print}
		default:
			intents[s.Message.ID] = note{updating, s.print}
		}
	}
	return r.notes.write(ctx, intents, nil)
}

// enqueue sends what is to be sent and notes what came over, which it returns. Nothing is noted about
// what nobody knows the fate of.
func (r *run) enqueue(ctx context.Context, ready []sending) (over []sending, err error) {
	var messages []bide.Message
	var at []int
	for i, s := range ready {
		if s.action != Known {
			messages, at = append(messages, s.Message), append(at, i)
		}
	}
	write, forget, failed := map[string]note{}, []string(nil), map[int]error{}
	for _, s := range ready {
		if s.action == Known && s.note.phase != done {
			write[s.Message.ID] = note{done, s.print}
		}
	}
	results, sendErr := r.Client.EnqueueMany(ctx, r.Queue, messages)
	for k, result := range results {
		s := &ready[at[k]]
		switch {
		case result.Err == nil:
			write[s.Message.ID] = note{done, s.print}
			if result.Outcome == storage.Duplicate {
				s.action = Known
			}
		case !refusal(result.Err):
			failed[at[k]] = result.Err
		default:
			failed[at[k]] = result.Err
			if s.note.phase == unsent {
				forget = append(forget, s.Message.ID)
			}
			r.tell(s.Entry, Refuse, result.Err)
		}
	}
	if err := r.notes.write(ctx, write, forget); err != nil {
		return nil, err
	}
	for i, s := range ready {
		if failed[i] == nil {
			r.tell(s.Entry, s.action, nil)
			over = append(over, s)
		}
	}
	for _, err := range failed {
		if !refusal(err) {
			return over, sendErr
		}
	}
	return over, nil
}

// refusal says whether an error is about one message, which was not stored.
func refusal(err error) bool {
	if errors.Is(err, bide.ErrUnknown) {
		return false
	}
	for _, kind := range []error{bide.ErrInvalid, bide.ErrTooLarge, bide.ErrExpired, bide.ErrFull} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// remove removes from the source what came over.
func (r *run) remove(ctx context.Context, over []sending) error {
	if len(over) == 0 {
		return nil
	}
	entries := make([]Entry, len(over))
	for i, s := range over {
		entries[i] = s.Entry
	}
	done, err := r.source.remove(ctx, r.notes, entries)
	for _, d := range done {
		switch d {
		case removed:
			r.report.Removed++
		case changed:
			r.report.Changed++
		case missing:
			r.report.Taken++
		}
	}
	if err != nil {
		return fmt.Errorf("%w; nothing is lost, run it again", err)
	}
	return nil
}
