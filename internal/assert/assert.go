// SPDX-License-Identifier: Apache-2.0

// Package assert has the few checks that tests share. A failed check ends the test.
package assert

import (
	"bytes"
	"errors"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// Equal fails unless got and want are the same; errors inside are compared with errors.Is, empty
// slices and maps equal nil ones.
func Equal[T any](t testing.TB, got, want T, context ...any) {
	t.Helper()
	if diff := Diff(got, want); diff != "" {
		fatal(t, context, "got differs from want (-want +got):\n%s", diff)
	}
}

// Diff describes how got differs from want, "" if it does not.
func Diff(got, want any) string {
	if reflect.DeepEqual(got, want) { // what is the same needs no description, which is slow to make
		return ""
	}
	return cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.EquateErrors(), large)
}

// large compares long byte slices at once: cmp looks at each byte, which takes seconds for a
// megabyte under the race detector.
var large = cmp.FilterValues(func(a, b []byte) bool { return len(a) > 4096 && len(b) > 4096 }, cmp.Comparer(bytes.Equal))

// NoError fails on an error.
func NoError(t testing.TB, err error, context ...any) {
	t.Helper()
	if err != nil {
		fatal(t, context, "got error %v, want none", err)
	}
}

// ErrorIs fails unless err is or wraps want.
func ErrorIs(t testing.TB, err, want error, context ...any) {
	t.Helper()
	if !errors.Is(err, want) {
		fatal(t, context, "got error %v, want %v", err, want)
	}
}

// True fails unless ok.
func True(t testing.TB, ok bool, context ...any) {
	t.Helper()
	if !ok {
		fatal(t, context, "got false, want true")
	}
}

func fatal(t testing.TB, context []any, format string, args ...any) {
	t.Helper()
	if len(context) > 0 {
		t.Log(context...)
	}
	t.Fatalf(format, args...)
}
