// SPDX-License-Identifier: Apache-2.0

// Command form is the form that submits itself: a while after the last change, by one of several
// processes that compete for it. Each change overwrites what waits, content and due time; until it
// is submitted, the content can be read by the id of the form.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/examples/internal/stage"
	"github.com/bidemq/bide/storage"
)

type form struct {
	Applicant string `json:"applicant"`
	Version   int    `json:"version"`
	Answer    string `json:"answer"`
}

var forms = bide.NewQueueWith(
	"form.submit", bide.QueueOptions[form]{Defaults: []bide.Option{bide.Replace()}})

type example struct {
	forms, changes, processes int
	timeout                   time.Duration
}

func main() {
	var e example
	flag.IntVar(&e.forms, "forms", 20, "that are filled in")
	flag.IntVar(&e.changes, "changes", 3, "of each form")
	flag.IntVar(&e.processes, "processes", 4, "that compete for the forms")
	flag.DurationVar(&e.timeout, "timeout", 3*time.Second, "from the last change until a form submits itself; a minute in real life")
	stage.Main(e.run)
}

func (e example) run(ctx context.Context, out io.Writer, client *bide.Client) error {
	id := func(f form) string { return "form-" + f.Applicant }
	for version := range e.changes {
		for n := range e.forms {
			f := form{Applicant: fmt.Sprint(n), Version: version + 1, Answer: "because"}
			res, err := forms.Enqueue(ctx, client, f, bide.ID(id(f)), bide.In(e.timeout))
			if err != nil {
				return err
			}
			if n == 0 {
				fmt.Fprintf(out, "%s version %d: %s\n", res.ID, f.Version, res.Outcome)
			}
		}
	}
	waits, err := forms.Get(ctx, client, "form-0")
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s waits with version %d\n", waits.ID, waits.Body.Version)

	var submitted stage.Ledger
	processes := make([]*bide.Consumer, e.processes) // they may as well run before the forms, and elsewhere
	for i := range processes {
		processes[i] = bide.NewConsumer(client, bide.ConsumerConfig{Name: fmt.Sprintf("process %d", i+1), Concurrency: 2})
		forms.Handle(processes[i], func(_ context.Context, d *bide.Delivery[form]) error {
			submitted.Note(fmt.Sprintf("%s version %d", d.ID, d.Body.Version))
			if d.Body.Applicant == "1" {
				return bide.DeadLetter(errors.New("an answer is missing")) // logged, and the rest goes on
			}
			return nil
		})
	}
	stop := stage.Start(ctx, processes...)
	err = errors.Join(submitted.Until(ctx, e.forms), stop(), submitted.Once(e.forms))
	if err != nil {
		return err
	}
	for n := range e.forms {
		if last := fmt.Sprintf("form-%d version %d", n, e.changes); submitted.Times(last) != 1 {
			return fmt.Errorf("%s was not submitted", last)
		}
	}
	if _, err := forms.Get(ctx, client, "form-0"); !errors.Is(err, bide.ErrNotFound) {
		return fmt.Errorf("the content of form-0 should be gone: %w", err)
	}
	refused, err := client.Count(ctx, forms.Name(), storage.Filter{State: storage.Dead})
	fmt.Fprintf(out, "%d forms submitted once, in their last version; %d of them refused\n", e.forms, refused)
	return err
}
