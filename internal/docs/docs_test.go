// SPDX-License-Identifier: Apache-2.0

// Package docs keeps the documents true: their programs run, the files and tests that they name are
// there.
package docs

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/bidemq/bide/internal/assert"
)

const root = "../.."

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, name))
	assert.NoError(t, err)
	return string(data)
}

// Every Go block of the README is a program that runs and prints what its text promises.
func TestReadmePrograms(t *testing.T) {
	if testing.Short() {
		t.Skip("builds programs")
	}
	want := []string{"order 42 was not paid, attempt 1\n", "dropped [e4]\nchess 2 events\n"}
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(read(t, "README.md"), -1)
	assert.Equal(t, len(blocks), len(want), "a block of Go without an expectation, or the reverse")
	for i, block := range blocks {
		dir := t.TempDir()
		source, program := filepath.Join(dir, "main.go"), filepath.Join(dir, "program")
		assert.NoError(t, os.WriteFile(source, []byte(block[1]), 0o600))
		build := exec.CommandContext(t.Context(), "go", "build", "-o", program, source)
		build.Dir = root // its module
		out, err := build.CombinedOutput()
		assert.NoError(t, err, string(out))
		run := exec.CommandContext(t.Context(), program)
		run.Dir = dir
		var stdout, stderr bytes.Buffer
		run.Stdout, run.Stderr = &stdout, &stderr
		assert.NoError(t, run.Run(), stderr.String())
		assert.Equal(t, stdout.String(), want[i])
	}
}

// Links of the documents lead to files.
func TestLinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)
	code := regexp.MustCompile("(?s)```.*?```|`[^`\n]*`")
	documents := documents(t)
	assert.True(t, len(documents) > 5, "documents:", documents)
	for _, document := range documents {
		for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(read(t, document), ""), -1) {
			target := filepath.Join(root, filepath.Dir(document), m[1])
			_, err := os.Stat(target)
			assert.NoError(t, err, document, "links to", m[1])
		}
	}
}

// A promise in docs/guarantees.md names the test that shows it, and that test is there.
func TestGuaranteesNameTheirTests(t *testing.T) {
	name := regexp.MustCompile("`((?:Test|Fuzz|R\\d\\d|Identity)\\w+)`")
	sources := testSources(t)
	named := name.FindAllStringSubmatch(read(t, "docs/guarantees.md"), -1)
	assert.True(t, len(named) > 20, "only so many tests are named:", len(named))
	for _, m := range named {
		found := strings.Contains(sources, "func "+m[1]+"(") || strings.Contains(sources, `{name: "`+m[1]+`"`)
		assert.True(t, found, "docs/guarantees.md names a test that is not there:", m[1])
	}
}

func documents(t *testing.T) []string {
	t.Helper()
	var found []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/adr/*.md", "examples/*.md"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		assert.NoError(t, err)
		for _, f := range files {
			found = append(found, strings.TrimPrefix(f, root+"/"))
		}
	}
	return found
}

// testSources is the text of all Go files that tests are in.
func testSources(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		if strings.HasSuffix(path, "_test.go") || strings.Contains(path, "storagetest") {
			data, err := os.ReadFile(path)
			all.Write(data)
			return err
		}
		return nil
	})
	assert.NoError(t, err)
	return all.String()
}
