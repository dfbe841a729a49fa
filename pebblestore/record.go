// SPDX-License-Identifier: Apache-2.0

package pebblestore

import (
	"cmp"
	"slices"
	"time"

	"github.com/bidemq/bide/storage"
)

// record is what the engine needs of a record for its transitions: all but the payload. Instants
// and durations are in milliseconds.
type record struct {
	id, key  string
	priority int

	seq         int64
	enqueued    int64
	due         int64
	firstDue    int64
	expireIn    int64
	dedupFor    int64
	maxAttempts int

	state      storage.State // Ready (delayed ones too), Leased, Dead or Done
	attempts   int
	deliveries int
	finished   int64
	reason     string
	successor  bool
	untold     bool
	size       int64 // of the payload, of leased and done records
	history    []storage.Attempt

	token int64
	until int64
	by    string

	payload  []byte // encoded; nil if it is on disk only
	stateful bool   // S exists
	grant    *grant // of a leased record
	heap     int    // index among the leases
	inKey    int    // index among the leases of the key
}

func (r *record) expires() int64 { return r.firstDue + r.expireIn }

func (r *record) expired(now int64) bool { return r.expireIn > 0 && r.expires() <= now }

func (r *record) place() place { return place{r.due, r.seq} }

// at is the place of a record among those of its state.
func (r *record) at() place {
	switch r.state {
	case storage.Leased:
		return place{r.until, r.seq}
	case storage.Dead, storage.Done:
		return place{r.finished, r.seq}
	default:
		return r.place()
	}
}

func compareAt(a, b *record) int {
	p, q := a.at(), b.at()
	return cmp.Or(cmp.Compare(p.at, q.at), cmp.Compare(p.seq, q.seq))
}

// view is the record as callers see it, with a payload of its own.
func (r *record) view(now int64, p payload) storage.Record {
	v := storage.Record{
		ID: r.id, Key: r.key, Priority: r.priority,
		Body: p.body, Headers: p.headers,
		Due:         instant(r.due),
		ExpireIn:    time.Duration(r.expireIn) * time.Millisecond,
		MaxAttempts: r.maxAttempts,
		DedupFor:    time.Duration(r.dedupFor) * time.Millisecond,
		Seq:         r.seq,
		State:       r.state,
		FirstDue:    instant(r.firstDue),
		Enqueued:    instant(r.enqueued),
		Attempts:    r.attempts,
		Deliveries:  r.deliveries,
		Reason:      r.reason,
		Successor:   r.successor,
		Untold:      r.untold,
		History:     slices.Clone(r.history),
	}
	switch {
	case r.state == storage.Leased:
		v.Lease = storage.Lease{Token: r.token, Until: instant(r.until), By: r.by}
	case r.state == storage.Dead || r.state == storage.Done:
		v.Finished = instant(r.finished)
	case r.due > now:
		v.State = storage.Delayed
	}
	return v
}

func instant(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

func millis(d time.Duration) int64 { return storage.Millis(d).Milliseconds() }

func position(r *record) storage.Position {
	return storage.Position{At: instant(r.at().at), Seq: r.seq}
}
