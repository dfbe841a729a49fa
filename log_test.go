// SPDX-License-Identifier: Apache-2.0

package bide_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/internal/assert"
)

// logged is a buffer of JSON lines.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logged) lines(t *testing.T) (lines []map[string]any) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for dec := json.NewDecoder(&l.b); dec.More(); {
		var line map[string]any
		assert.NoError(t, dec.Decode(&line))
		lines = append(lines, line)
	}
	return lines
}

func TestLogs(t *testing.T) {
	bubble(t, func(t *testing.T, engine *faulty, client *bide.Client) {
		var log logged
		consumer := bide.NewConsumer(client, bide.ConsumerConfig{
			Logger:  slog.New(slog.NewJSONHandler(&log, nil)),
			Backoff: func(int) time.Duration { return time.Second },
		})
		outcome := map[string]error{
			"fine":   nil,
			"snooze": bide.Snooze(time.Hour),
			"fails":  errors.New("boom"),
			"dead":   bide.DeadLetter(errors.New("boom")),
		}
		orders.Handle(consumer, func(_ context.Context, d *bide.Delivery[order]) error {
			if d.ID == "panics" {
				return []error{}[d.Attempt]
			}
			return outcome[d.ID]
		})
		stop := start(t, consumer)
		for _, c := range []struct {
			id    string
			level []string
		}{
			{"fine", nil},
			{"snooze", nil},
			{"fails", []string{"WARN", "ERROR"}},
			{"panics", []string{"WARN", "ERROR"}},
			{"dead", []string{"ERROR"}},
		} {
			put(t, client, c.id, bide.MaxAttempts(2))
			pass(5 * time.Second)
			var levels []string
			for i, line := range log.lines(t) {
				level, ok := line["level"].(string)
				assert.True(t, ok)
				levels = append(levels, level)
				assert.Equal(t, []any{line["queue"], line["id"], line["attempt"]}, []any{"orders", c.id, float64(i + 1)})
				assert.True(t, line["error"] != nil, line)
				stack, _ := line["stack"].(string)
				assert.Equal(t, strings.Contains(stack, "log_test.go"), c.id == "panics")
			}
			assert.Equal(t, levels, c.level)
		}
		engine.loses(settle, 1)
		put(t, client, "fine")
		pass(5 * time.Second)
		assert.Equal(t, log.lines(t)[0]["msg"], any("settled with unknown outcome"))
		assert.NoError(t, stop())
	})
}
