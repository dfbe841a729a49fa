// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/storage"
)

// printers returns handlers that print messages as JSON lines.
func (a *app) printers() (bide.Handler, bide.BatchHandler) {
	out := &lockedWriter{w: a.out}
	batch := func(_ context.Context, _ string, ds []*bide.Delivery[[]byte]) error {
		lines, err := jsonLines(ds)
		if err != nil {
			return err
		}
		_, err = out.Write(lines)
		return err
	}
	return func(ctx context.Context, d *bide.Delivery[[]byte]) error {
		return batch(ctx, d.Key, []*bide.Delivery[[]byte]{d})
	}, batch
}

// jsonLines shows messages, a line for each.
func jsonLines(ds []*bide.Delivery[[]byte]) ([]byte, error) {
	var lines []byte
	for _, d := range ds {
		line, err := json.Marshal(show(*d.Record()))
		if err != nil {
			return nil, err
		}
		lines = append(append(lines, line...), '\n')
	}
	return lines, nil
}

// environment tells a command about its message.
func environment(d *bide.Delivery[[]byte]) []string {
	env := []string{
		"BIDE_QUEUE=" + d.Queue,
		"BIDE_ID=" + d.ID,
		"BIDE_KEY=" + d.Key,
		"BIDE_ATTEMPT=" + strconv.Itoa(d.Attempt),
		"BIDE_MAX_ATTEMPTS=" + strconv.Itoa(d.MaxAttempts),
		"BIDE_DELIVERIES=" + strconv.Itoa(d.Deliveries),
		"BIDE_TOKEN=" + strconv.FormatInt(d.Token(), 10),
		"BIDE_DUE=" + d.Due.UTC().Format(time.RFC3339Nano),
	}
	for _, name := range slices.Sorted(maps.Keys(d.Headers)) {
		if value := d.Headers[name]; !strings.Contains(value, "\x00") {
			env = append(env, "BIDE_HEADER_"+strings.Map(variable, name)+"="+value)
		}
	}
	return env
}

// variable makes a character fit for the name of a variable.
func variable(r rune) rune {
	switch {
	case 'a' <= r && r <= 'z':
		return r - 'a' + 'A'
	case 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		return r
	default:
		return '_'
	}
}

// lockedWriter lets commands that run at once write to one place.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// lastLine keeps the last line that was written, as the reason of a failure.
type lastLine struct {
	mu   sync.Mutex
	data []byte
}

func (l *lastLine) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.data = append(l.data, p...)
	if over := len(l.data) - storage.MaxReason; over > 0 {
		l.data = l.data[over:]
	}
	return len(p), nil
}

func (l *lastLine) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := strings.TrimSpace(strings.ToValidUTF8(string(l.data), "?"))
	return strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
}
