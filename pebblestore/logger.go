// SPDX-License-Identifier: Apache-2.0

package pebblestore

import (
	"errors"
	"fmt"
	"log/slog"
)

// logger passes on what Pebble has to say. Where Pebble would end the process it freezes the file
// system instead, which is as safe for the data, and lets the calls fail.
type logger struct {
	log   *slog.Logger
	guard *guard
}

// Infof drops Pebble's remarks about its files.
func (l logger) Infof(string, ...any) {}

// Errorf reports what Pebble recovers from by itself.
func (l logger) Errorf(format string, args ...any) {
	if l.guard.failure() != nil {
		return
	}
	l.log.Warn("pebblestore: disk", "error", fmt.Sprintf(format, args...))
}

// Fatalf freezes the file system. It returns, unlike what Pebble expects, into code that can no
// longer change the disk.
func (l logger) Fatalf(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	l.guard.fail(errors.New(text))
	l.log.Error("pebblestore: frozen until opened again", "error", text)
}
