// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"github.com/spf13/cobra"
)

// when is a due time as people give it: after a while, or at an instant.
type when struct {
	in time.Duration
	at string
}

func (w *when) flags(c *cobra.Command) {
	c.Flags().DurationVar(&w.in, "in", 0, "due after this long, 90s or 1h30m")
	c.Flags().StringVar(&w.at, "at", "", "due at this instant, 2026-01-31T09:00:00Z or 2026-01-31 09:00 (local); the past is now")
}

// due returns the instant of --at, zero if it was not given.
func (w *when) due() (time.Time, error) {
	switch {
	case w.at == "":
		return time.Time{}, nil
	case w.in != 0:
		return time.Time{}, invalid("--in and --at exclude each other")
	}
	return parseInstant(w.at)
}

func parseInstant(s string) (time.Time, error) {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02"} {
		if t, err := time.ParseInLocation(layout, s, time.Local); err == nil {
			return t, nil
		}
	}
	return time.Time{}, invalid("instant %q is not like 2026-01-31T09:00:00Z or 2026-01-31 09:00", s)
}
