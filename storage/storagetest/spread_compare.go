// SPDX-License-Identifier: Apache-2.0

package storagetest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/storage"
)

// compare says how what can be seen of the queue differs from what can be seen of those of the model.
func (m *spreadMachine) compare(ctx context.Context) string {
	got, diff := m.look(ctx, m.got)
	if diff != "" {
		return diff
	}
	if d := sumUp(&got.Stats); d != "" {
		return d
	}
	want := View{Records: map[string][]storage.Record{}}
	for _, m.want.Queue = range m.names {
		v, diff := m.look(ctx, m.want)
		if diff != "" {
			return diff
		}
		for state, recs := range v.Records {
			want.Records[state] = append(want.Records[state], recs...)
		}
		want.Keys = append(want.Keys, v.Keys...)
		addCounts(&want.Stats, &v.Stats)
	}
	slices.SortFunc(want.Keys, func(a, b storage.KeyStats) int { return cmp.Compare(a.Key, b.Key) })
	for _, v := range []*View{&got, &want} {
		for state := range maps.Keys(v.Records) {
			v.Records[state] = seen(v.Records[state])
			slices.SortFunc(v.Records[state], func(a, b storage.Record) int {
				return cmp.Or(a.At().Compare(b.At()), cmp.Compare(a.ID, b.ID), a.Enqueued.Compare(b.Enqueued))
			})
		}
		v.Stats.Config, v.Stats.Now, v.Stats.Total = storage.QueueConfig{}, time.Time{}, storage.Counters{}
	}
	return assert.Diff(got, want)
}

// look reads all of a queue, in small pages, which have to come in order.
func (m *spreadMachine) look(ctx context.Context, of *Machine) (View, string) {
	st, err := of.Engine.Stats(ctx, of.Now, of.Queue)
	v := View{Stats: st, Records: map[string][]storage.Record{}}
	if err == nil {
		v.Keys, err = of.Engine.Keys(ctx, of.Now, of.Queue, storage.KeyFilter{Limit: storage.MaxBatch})
	}
	for _, state := range []storage.State{storage.Delayed, storage.Ready, storage.Leased, storage.Dead, storage.Done} {
		var all any
		if err == nil {
			all, err = of.list(ctx, storage.Filter{State: state, Limit: 4})
		}
		recs, _ := all.([]storage.Record)
		for i := range recs {
			if i > 0 && cmp.Or(recs[i-1].At().Compare(recs[i].At()), cmp.Compare(recs[i-1].Seq, recs[i].Seq)) >= 0 {
				return v, fmt.Sprintf("%s comes behind %s in the list", recs[i].ID, recs[i-1].ID)
			}
		}
		v.Records[state.String()] = recs
	}
	if err != nil {
		return v, err.Error()
	}
	return v, ""
}

// sumUp says whether counts do not add up. R14
func sumUp(st *storage.Stats) string {
	c := &st.Total
	stored := c.Enqueued - c.Replaced - c.Acked - c.Expired - c.Canceled - c.Purged - c.Dropped + c.Retained - c.Trimmed
	if n := st.Delayed + st.Ready + st.Leased + st.Dead + st.Done; n != stored {
		return fmt.Sprintf("there are %d records, the counters say %d", n, stored)
	}
	return ""
}

// addCounts adds what one queue of the model has.
func addCounts(to, from *storage.Stats) {
	to.Delayed += from.Delayed
	to.Ready += from.Ready
	to.Leased += from.Leased
	to.Dead += from.Dead
	to.Done += from.Done
	to.Keys += from.Keys
	if d := from.NextDue; !d.IsZero() && (to.NextDue.IsZero() || d.Before(to.NextDue)) {
		to.NextDue = d
	}
}
