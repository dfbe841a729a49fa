// SPDX-License-Identifier: Apache-2.0

package redistest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Clock makes the clock of the server one that Turn turns, with libfaketime. The test is skipped
// where that is not installed, or fails where Redis is required.
func Clock() Option { return func(s *Server) { s.clock = filepath.Join(s.dir, "clock") } }

// fake prepares the clock of a server that is not started yet.
func (s *Server) fake(t testing.TB) {
	t.Helper()
	libraries, err := filepath.Glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
	if err != nil {
		t.Fatal(err)
	}
	if len(libraries) == 0 {
		if required() {
			t.Fatal("libfaketime is not installed: install it, on Debian with apt-get install libfaketime")
		}
		t.Skip("libfaketime is not installed, which turns the clock of a server")
	}
	s.env = []string{
		// The library hangs with jemalloc, which asks for the time before anything else: memory comes
		// from the C library here.
		"LD_PRELOAD=" + libraries[0] + " libc.so.6",
		"FAKETIME_TIMESTAMP_FILE=" + s.clock, "FAKETIME_NO_CACHE=1", "FAKETIME_DONT_FAKE_MONOTONIC=1",
	}
	s.Turn(t, 0)
}

// Turn makes the clock of the server so far ahead of that of the machine, or behind it, at once.
func (s *Server) Turn(t testing.TB, by time.Duration) {
	t.Helper()
	temp := s.clock + ".new"
	if err := os.WriteFile(temp, fmt.Appendf(nil, "%+.3f\n", by.Seconds()), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(temp, s.clock); err != nil { // never half of a number
		t.Fatal(err)
	}
}
