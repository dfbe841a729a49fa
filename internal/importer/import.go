// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/redis/rueidis"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/storage"
)

// DefaultDedup is how long the id of an imported message stays taken after its ack.
const DefaultDedup = 24 * time.Hour

// Config of an import.
type Config struct {
	Notes  rueidis.Client // the server of the source, which keeps the notes
	Client *bide.Client   // of the target; a dry run does without
	Target string         // names the store of the queue among all that are imported to
	Queue  string

	Remove      bool          // remove from the source what came over
	DryRun      bool          // change nothing
	Keep        bool          // leave a message that somebody else has enqueued under the id of an entry as it is
	Forget      bool          // begin without the notes of earlier runs
	Batch       int           // entries at once, 0 is 200
	DedupFor    time.Duration // bridges the instant of a crash, see the package comment; 0 is DefaultDedup
	MaxAttempts int           // for messages whose source says nothing, 0 is bide.DefaultMaxAttempts

	Each   func(Entry, Action, error) // told of every entry; the error is why it was refused
	Total  func(total int64)          // told how many there are
	Remark func(text string)          // told what a person should know
}

// Action is what is done with an entry.
type Action string

// The actions.
const (
	Import Action = "import" // it becomes a message
	Update Action = "update" // it takes the place of a message, or follows it
	Known  Action = "known"  // it came over before
	Ask    Action = "ask"    // a dry run does not ask the target what an interrupted run did
	Refuse Action = "refuse" // it cannot be imported, and stays
)

// Report counts entries.
type Report struct {
	Imported int `json:"imported"`
	Updated  int `json:"updated"`
	Known    int `json:"known"`
	Asked    int `json:"asked,omitempty"` // by a dry run, see Ask
	Refused  int `json:"refused"`
	Removed  int `json:"removed"` // from the source
	Changed  int `json:"changed"` // in the source while they were imported: they are left for another run
	Taken    int `json:"taken"`   // from the source by somebody else while they were imported
}

// Run imports what is in the source. When ctx ends it finishes the entries under way and returns
// the error of ctx. Whatever ends it, the next Run goes on where it was.
func Run(ctx context.Context, s Source, c Config) (Report, error) {
	c.Batch = cmp.Or(c.Batch, 200)
	c.DedupFor = cmp.Or(c.DedupFor, DefaultDedup)
	if err := check(s, c); err != nil {
		return Report{}, err
	}
	r := run{Config: c, source: s, notes: newNotes(c.Notes, s.key(), c.Target+"\x00"+c.Queue)}
	remarks, err := s.aside(ctx)
	if err != nil {
		return r.report, err
	}
	for _, text := range remarks {
		c.Remark(text)
	}
	total, err := s.total(ctx)
	if err != nil {
		return r.report, err
	}
	c.Total(total)
	if !c.DryRun {
		held, release, err := r.notes.acquire(ctx, func() { c.Remark("waiting for another import of the same source to end") })
		if err != nil {
			return r.report, err
		}
		defer release()
		ctx = held
	}
	if err = r.begin(ctx); err == nil {
		err = r.all(ctx)
	}
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return r.report, err
}

// check refuses what a Cluster cannot do in one step.
func check(s Source, c Config) error {
	hash := ""
	switch s := s.(type) {
	case *ZSet:
		hash = s.Bodies
	case *List:
		hash = s.Bodies
	}
	if c.Remove && hash != "" && c.Notes.Mode() == rueidis.ClientModeCluster && tag(hash) != tag(s.key()) {
		return fmt.Errorf("%w: %s and %s lie in different slots of the cluster, so that nothing can be removed from both in one step; import without removing", storage.ErrInvalid, s.key(), hash)
	}
	return nil
}

type run struct {
	Config
	source Source
	notes  *notes
	report Report
}

// begin forgets notes that cannot be true: a queue that has never held a message is not the one that
// they are about. Its directory was removed, say.
func (r *run) begin(ctx context.Context) error {
	if r.DryRun {
		return nil
	}
	if !r.Forget {
		st, err := r.Client.Stats(ctx, r.Queue)
		if err != nil {
			return err
		}
		r.Forget = st.Total.Enqueued == 0
	}
	if r.Forget {
		return r.notes.forget(ctx)
	}
	return nil
}

func (r *run) all(ctx context.Context) error {
	whole := context.WithoutCancel(ctx) // what was begun is brought to its end
	for entries, err := range r.source.batches(ctx, r.notes, r.Batch) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err == nil {
			err = r.batch(whole, entries)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// batch takes the entries of a batch over, in the order of steps of the package comment.
func (r *run) batch(ctx context.Context, entries []Entry) error {
	ready, err := r.sort(ctx, entries)
	if err != nil || r.DryRun {
		return err
	}
	if err := r.intend(ctx, ready); err != nil {
		return err
	}
	if err := r.resolve(ctx, ready); err != nil {
		return err
	}
	over, err := r.enqueue(ctx, ready)
	if err == nil && r.Remove {
		err = r.remove(ctx, over)
	}
	return err
}

func (r *run) tell(e Entry, a Action, err error) {
	switch a {
	case Import:
		r.report.Imported++
	case Update:
		r.report.Updated++
	case Known:
		r.report.Known++
	case Ask:
		r.report.Asked++
	case Refuse:
		r.report.Refused++
	}
	r.Each(e, a, err)
}
