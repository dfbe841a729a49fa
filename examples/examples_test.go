// SPDX-License-Identifier: Apache-2.0

// Package examples_test checks what all examples have in common.
package examples_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bidemq/bide/internal/assert"
)

// An example is short, has a test, and is listed.
func TestExamplesAreShortTestedAndListed(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	assert.NoError(t, err)
	programs, err := filepath.Glob("*/main.go")
	assert.NoError(t, err)
	assert.True(t, len(programs) >= 3, programs)
	for _, program := range programs {
		source, err := os.ReadFile(program)
		assert.NoError(t, err)
		lines := bytes.Count(source, []byte("\n"))
		assert.True(t, lines < 100, program, "has lines:", lines)
		assert.True(t, strings.Contains(string(readme), "]("+program+")"), program, "is not listed")
		_, err = os.Stat(filepath.Join(filepath.Dir(program), "main_test.go"))
		assert.NoError(t, err, program, "has no test")
	}
}
