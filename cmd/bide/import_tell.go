// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/bidemq/bide/internal/importer"
	"github.com/bidemq/bide/internal/redisconn"
)

// listed is how many entries of a dry run a person is shown.
const listed = 20

// importTeller tells how an import goes.
type importTeller struct {
	app    *app
	dryRun bool
	bar    *progress
	read   int
	shown  int
	first  error // why an entry was refused
}

func (t *importTeller) total(n int64) { t.bar = t.app.newProgress("entries read", int(n)) }

func (t *importTeller) remark(text string) { fmt.Fprintf(t.app.err, "note: %s\n", text) }

// told is an entry as JSON shows it.
type told struct {
	Source string     `json:"source"`
	ID     string     `json:"id"`
	Action string     `json:"action"`
	Due    *time.Time `json:"due,omitempty"`
	Bytes  int        `json:"bytes"`
	Error  string     `json:"error,omitempty"`
}

func (t *importTeller) each(e importer.Entry, action importer.Action, err error) {
	if t.read++; t.read%100 == 0 {
		t.bar.set(t.read)
	}
	if err != nil {
		if t.first == nil {
			t.first = err
		}
		fmt.Fprintf(t.app.err, "%s: %v\n", preview([]byte(e.Name), 60), err)
	}
	if !t.dryRun {
		return
	}
	if t.app.json {
		line := told{Source: e.Name, ID: e.Message.ID, Action: string(action), Bytes: len(e.Message.Body)}
		if !e.Message.Due.IsZero() {
			line.Due = &e.Message.Due
		}
		if err != nil {
			line.Error = err.Error()
		}
		_ = t.app.printJSON(line) // what cannot be written is noticed by the writer
		return
	}
	if t.shown++; t.shown > listed {
		return
	}
	due := "at once"
	if !e.Message.Due.IsZero() {
		due = "due " + e.Message.Due.Local().Format("2006-01-02 15:04:05.000")
	}
	t.app.printf("would %s %s, %s, %d bytes\n", intention(action), preview([]byte(e.Message.ID), 60), due, len(e.Message.Body))
}

// intention completes "would".
func intention(a importer.Action) string {
	switch a {
	case importer.Known:
		return "pass over"
	case importer.Ask:
		return "ask the target about"
	case importer.Import, importer.Update, importer.Refuse:
	}
	return string(a)
}

// end tells the outcome. It is an error if something could not be imported.
func (t *importTeller) end(r importer.Report, err error) error {
	if t.bar != nil && t.read > 0 {
		t.bar.set(t.read)
		t.bar.end()
	}
	if t.app.json {
		if t.dryRun {
			return t.fail(r, err)
		}
		data, _ := json.Marshal(r) // counts always marshal
		fmt.Fprintf(t.app.out, "%s\n", data)
		return t.fail(r, err)
	}
	if t.shown > listed {
		t.app.printf("... and %d more\n", t.shown-listed)
	}
	would := ""
	if t.dryRun {
		would = "dry run: "
	}
	t.app.printf("%s%d imported, %d updated, %d known from before, %d refused, %d removed from the source\n", would, r.Imported, r.Updated, r.Known, r.Refused, r.Removed)
	if r.Asked > 0 {
		t.app.printf("%d were under way when an import was interrupted: the target will be asked about them\n", r.Asked)
	}
	if r.Changed > 0 {
		t.app.printf("%d were changed in the source meanwhile and stay there: run it again\n", r.Changed)
	}
	if r.Taken > 0 {
		t.app.printf("%d were taken from the source by somebody else meanwhile: stop the old consumers, or those are handled twice\n", r.Taken)
	}
	return t.fail(r, err)
}

func (t *importTeller) fail(r importer.Report, err error) error {
	switch {
	case err != nil:
		return err
	case r.Refused > 0:
		return fmt.Errorf("%d of %d entries cannot be imported and stay in the source, the first of them: %s", r.Refused, t.read, t.first.Error())
	case r.Changed > 0:
		return fmt.Errorf("%d entries were changed meanwhile: run it again", r.Changed)
	}
	return nil
}

// importTarget names a store in the notes of an import, without credentials and in one way only.
func importTarget(store string) (string, error) {
	scheme, rest, _ := strings.Cut(store, ":")
	if strings.EqualFold(scheme, "pebble") {
		dir, err := filepath.Abs(directory(rest))
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			dir = real
		}
		return "pebble:" + dir, err
	}
	if !strings.HasPrefix(strings.ToLower(scheme), "redis") {
		return store, nil
	}
	t, err := redisconn.Parse(strings.ToLower(scheme) + ":" + rest)
	return fmt.Sprintf("%s/%s/%d?namespace=%s", t, t.Primary, t.DB, t.Namespace), err
}
