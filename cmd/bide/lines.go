// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/storage"
)

const (
	linesAtOnce = 500     // messages in a call
	longestLine = 4 << 20 // bytes; a body is 1 MiB at most, and base64 and escapes make it longer
)

// line is a message as a line of JSON.
type line struct {
	payload
	ID          string            `json:"id"`
	In          string            `json:"in"`
	Due         *time.Time        `json:"due"`
	Key         string            `json:"key"`
	Priority    int               `json:"priority"`
	Headers     map[string]string `json:"headers"`
	ExpireIn    string            `json:"expire_in"`
	MaxAttempts int               `json:"max_attempts"`
	DedupFor    string            `json:"dedup_for"`
	OnLive      string            `json:"on_live"`
}

// parseLine reads one line. A field that it does not know is an error, since a message that comes
// at once because "in" was misspelled cannot be called back.
func parseLine(data []byte) (bide.Message, error) {
	var l line
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&l); err != nil {
		return bide.Message{}, invalid("%v", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return bide.Message{}, invalid("more than one JSON value")
	}
	m := bide.Message{ID: l.ID, Key: l.Key, Priority: l.Priority, Headers: l.Headers, MaxAttempts: l.MaxAttempts}
	if l.Due != nil {
		m.Due = *l.Due
	}
	var err error
	if m.Body, err = l.bytes(); err != nil {
		return m, err
	}
	for _, span := range []struct {
		name, value string
		to          *time.Duration
	}{{"in", l.In, &m.Delay}, {"expire_in", l.ExpireIn, &m.ExpireIn}, {"dedup_for", l.DedupFor, &m.DedupFor}} {
		if span.value == "" {
			continue
		}
		if *span.to, err = time.ParseDuration(span.value); err != nil {
			return m, invalid("%s: %q is not a duration like 90s or 1h30m", span.name, span.value)
		}
	}
	for _, o := range []storage.OnLive{storage.Keep, storage.Replace, storage.Rerun} {
		if l.OnLive == o.String() {
			m.OnLive = o
			return m, nil
		}
	}
	if l.OnLive != "" {
		return m, invalid("on_live: %q is not keep, replace or rerun", l.OnLive)
	}
	return m, nil
}

// lineEnqueuer enqueues lines in batches and counts what became of them.
type lineEnqueuer struct {
	app    *app
	client *bide.Client
	queue  string

	batch   []bide.Message
	numbers []int // of the lines of batch
	counts  map[storage.Outcome]int
	lines   int
	failed  int
	first   error // of those that failed
}

func (a *app) enqueueLines(ctx context.Context, client *bide.Client, queue, name string) error {
	in, size := a.in, int64(-1)
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return invalid("%v", err)
		}
		defer func() { _ = f.Close() }() // it was only read
		if info, err := f.Stat(); err == nil {
			size = info.Size()
		}
		in = f
	}
	bar := progressbar.NewOptions64(size, progressbar.OptionSetWriter(a.progress()), progressbar.OptionSetDescription("enqueue "+queue),
		progressbar.OptionShowBytes(true), progressbar.OptionClearOnFinish(), progressbar.OptionThrottle(100*time.Millisecond))
	e := &lineEnqueuer{app: a, client: client, queue: queue, counts: map[storage.Outcome]int{}}
	err := e.read(ctx, io.TeeReader(in, bar))
	if err == nil {
		err = e.flush(ctx)
	}
	_ = bar.Finish()
	return errors.Join(err, e.summary())
}

func (e *lineEnqueuer) read(ctx context.Context, in io.Reader) error {
	scan := bufio.NewScanner(in)
	scan.Buffer(make([]byte, 64<<10), longestLine)
	for scan.Scan() {
		e.lines++
		data := bytes.TrimSpace(scan.Bytes())
		if len(data) == 0 {
			continue
		}
		m, err := parseLine(data)
		if err != nil {
			e.fail(e.lines, err)
			continue
		}
		e.batch = append(e.batch, m)
		e.numbers = append(e.numbers, e.lines)
		if len(e.batch) == linesAtOnce {
			if err := e.flush(ctx); err != nil {
				return err
			}
		}
	}
	if errors.Is(scan.Err(), bufio.ErrTooLong) {
		return invalid("line %d is longer than %d bytes; it and what follows were not read", e.lines+1, longestLine)
	}
	return scan.Err()
}

// flush enqueues what was read. It fails when the store does, not when a message is refused.
func (e *lineEnqueuer) flush(ctx context.Context) error {
	if len(e.batch) == 0 {
		return nil
	}
	results, err := e.client.EnqueueMany(ctx, e.queue, e.batch)
	for i, r := range results {
		e.counts[r.Outcome]++
		if r.Err != nil {
			e.fail(e.numbers[i], r.Err)
		}
	}
	e.batch, e.numbers = e.batch[:0], e.numbers[:0]
	if len(results) > 0 && !errors.Is(err, bide.ErrUnknown) && !errors.Is(err, bide.ErrUnavailable) {
		return ctx.Err()
	}
	return err
}

func (e *lineEnqueuer) fail(number int, err error) {
	e.failed++
	if e.first == nil {
		e.first = err
	}
	fmt.Fprintf(e.app.err, "line %d: %v\n", number, err)
}

// summary says how many lines became what. It is an error if some were not enqueued.
func (e *lineEnqueuer) summary() error {
	stored := e.counts[storage.Stored]
	duplicate, replaced, reran := e.counts[storage.Duplicate], e.counts[storage.Replaced], e.counts[storage.Reran]
	if e.app.json {
		if err := e.app.printJSON(map[string]int{"stored": stored, "duplicate": duplicate, "replaced": replaced, "rerun": reran, "failed": e.failed}); err != nil {
			return err
		}
	}
	e.app.printf("%d stored, %d duplicate, %d replaced, %d rerun, %d failed\n", stored, duplicate, replaced, reran, e.failed)
	if e.failed > 0 {
		return fmt.Errorf("%d of %d lines were not enqueued, the first of them: %w", e.failed, e.lines, e.first)
	}
	return nil
}
