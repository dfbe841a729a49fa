// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
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
	linesAtOnce = 500      // messages in a call
	longestLine = 16 << 20 // bytes; a body may be ten times as long with escapes
)

// lineEnqueuer enqueues lines in batches and counts what became of them.
type lineEnqueuer struct {
	app    *app
	client *bide.Client
	queue  string

	batch   []bide.Message
	numbers []int // of the lines of batch
	counts  map[storage.Outcome]int
	lines   int
	dropped int // to make room
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
	err := e.read(ctx, bufio.NewReaderSize(io.TeeReader(in, bar), 64<<10))
	err = errors.Join(err, e.flush(ctx))
	_ = bar.Finish()
	return errors.Join(err, e.summary())
}

// read enqueues line after line. It fails when the input or the store does, not when a line is bad.
func (e *lineEnqueuer) read(ctx context.Context, in *bufio.Reader) error {
	for more := true; more; {
		data, long, err := readLine(in)
		switch {
		case errors.Is(err, io.EOF):
			more = false
		case err != nil:
			return err
		}
		if len(data) > 0 || long {
			e.lines++
			e.line(data, long)
		}
		if len(e.batch) == linesAtOnce {
			if err := e.flush(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *lineEnqueuer) line(data []byte, long bool) {
	if e.lines == 1 {
		data = bytes.TrimPrefix(data, []byte("\ufeff"))
	}
	data = bytes.TrimSpace(data)
	switch m, err := parseLine(data); {
	case long:
		e.fail(e.lines, invalid("the line is longer than %d bytes", longestLine))
	case len(data) == 0:
	case err != nil:
		e.fail(e.lines, err)
	default:
		e.batch = append(e.batch, m)
		e.numbers = append(e.numbers, e.lines)
	}
}

// readLine returns the next line with its end, or says that it is too long and skips it. At the end
// of the input the error is io.EOF, beside a last line without an end.
func readLine(in *bufio.Reader) (line []byte, long bool, err error) {
	for {
		part, err := in.ReadSlice('\n')
		if len(line)+len(part) > longestLine {
			line, long = nil, true
		}
		if !long {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, long, err
		}
	}
}

// flush enqueues what was read. It fails when the store does, not when a message is refused.
func (e *lineEnqueuer) flush(ctx context.Context) error {
	if len(e.batch) == 0 {
		return nil
	}
	results, err := e.client.EnqueueMany(ctx, e.queue, e.batch)
	for i, r := range results {
		e.counts[r.Outcome]++
		e.dropped += len(r.Dropped)
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
		if err := e.app.printJSON(map[string]int{"stored": stored, "duplicate": duplicate, "replaced": replaced, "rerun": reran, "dropped": e.dropped, "failed": e.failed}); err != nil {
			return err
		}
	}
	e.app.printf("%d stored, %d duplicate, %d replaced, %d rerun, %d failed\n", stored, duplicate, replaced, reran, e.failed)
	if e.dropped > 0 {
		e.app.printf("%d dropped to make room\n", e.dropped)
	}
	if e.failed > 0 {
		return fmt.Errorf("%d of %d lines were not enqueued, the first of them: %w", e.failed, e.lines, e.first)
	}
	return nil
}
