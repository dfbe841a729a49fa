// SPDX-License-Identifier: Apache-2.0

package storagetest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
)

// coverage counts the steps of programs by the rule they try and the state of the record they try
// it on, so that a program generator that stops meeting a case is noticed.
type coverage struct {
	mu   sync.Mutex
	hits map[string]map[string]int // rule, state
}

var coveredStates = []string{"none", "delayed", "ready", "leased", "dead", "done"}

// coveredRules names the calls that a rule is tried by.
var coveredRules = []struct {
	rule string
	does string
}{
	{"R1 and the table of ids, keep", "enqueue keep"},
	{"R1 and the table of ids, replace", "enqueue replace"},
	{"R1 and the table of ids, rerun", "enqueue rerun"},
	{"R5 settle: ack", "ack"},
	{"R5 R7 settle: retry", "retry"},
	{"R5 R7 settle: release", "release"},
	{"R5 R7 settle: return", "return"},
	{"R5 R7 settle: bury", "bury"},
	{"R5 R13 settle: expire", "expire"},
	{"R5 extend", "extend"},
	{"R10 cancel", "cancel"},
	{"R10 cancel running", "cancelRunning"},
	{"R10 reschedule", "reschedule"},
	{"R10 edit", "edit"},
	{"redrive by id", "redrive"},
	{"get", "get"},
	{"R2 R3 R4 R9 claim, beside", "claim"},
	{"R3 R11 R18 claim for a group, beside", "claim group"},
	{"R3 claim of a part, beside", "claim part"},
	{"R15 claim while paused, beside", "claim paused"},
	{"keys, beside", "keys"},
	{"purge, beside", "purge"},
	{"list, beside", "list"},
}

func newCoverage() *coverage {
	c := &coverage{hits: map[string]map[string]int{}}
	for _, r := range coveredRules {
		c.hits[r.does] = map[string]int{}
	}
	return c
}

// note looks at what a step is about to meet on the model.
func (c *coverage) note(ctx context.Context, model *Machine, op Op) {
	does := op.Do
	ids := op.IDs
	if does == "enqueue" {
		does += " " + op.OnLive.String()
	}
	for _, r := range model.back(op.Back) {
		ids = append(ids, r.ID)
	}
	if len(ids) == 0 {
		c.noteQueue(ctx, model, op)
	}
	for _, id := range ids {
		state := "none"
		if r, err := model.Engine.Get(ctx, model.Now.Add(op.After), model.Queue, id); err == nil {
			state = r.State.String()
		}
		c.hit(does, state)
	}
}

// noteQueue looks at what the queue holds when a step is made that names no record. It leaves steps
// alone that let no time pass: looking would.
func (c *coverage) noteQueue(ctx context.Context, model *Machine, op Op) {
	if op.Do != "claim" && op.Do != "purge" && op.Do != "list" && op.Do != "keys" {
		return
	}
	st, err := model.Engine.Stats(ctx, model.Now.Add(op.After), model.Queue)
	if err != nil {
		return
	}
	held := map[string]int64{"delayed": st.Delayed, "ready": st.Ready, "leased": st.Leased, "dead": st.Dead, "done": st.Done}
	if st.Delayed+st.Ready+st.Leased+st.Dead+st.Done == 0 {
		held["none"] = 1
	}
	does := op.Do
	switch {
	case does != "claim":
	case st.Config.Paused:
		does = "claim paused"
	case op.Group:
		does = "claim group"
	case len(op.Keys)+len(op.Except) > 0:
		does = "claim part"
	}
	for state, n := range held {
		if n > 0 {
			c.hit(does, state)
		}
	}
}

func (c *coverage) hit(does, state string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if row := c.hits[does]; row != nil {
		row[state]++
	}
}

// complete fails if a rule was not tried on some state.
func (c *coverage) complete(t *testing.T) {
	t.Helper()
	for _, r := range coveredRules {
		for _, state := range coveredStates {
			if c.hits[r.does][state] == 0 {
				t.Errorf("%s was never tried on a record that is %s", r.rule, state)
			}
		}
	}
}

// String prints a table of rules by states.
func (c *coverage) String() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "\t%s\t\n", strings.Join(coveredStates, "\t"))
	for _, r := range coveredRules {
		fmt.Fprint(w, r.rule)
		for _, state := range coveredStates {
			fmt.Fprintf(w, "\t%d", c.hits[r.does][state])
		}
		fmt.Fprintln(w, "\t")
	}
	_ = w.Flush()
	return b.String()
}
