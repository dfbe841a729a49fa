// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/bidemq/bide/internal/assert"
)

// prelude is what the statements of docs/from-scripts.md find around them.
const prelude = `
func send(context.Context, string) error         { return nil }
func handle(context.Context, Order, int64) error { return nil }
func locked(Order) bool                          { return false }
func main()                                      {}
`

// Every Go block of docs/from-scripts.md compiles: as declarations if it begins with one, else as
// the statements of a function that has a context, a client and a consumer.
func TestTranslationsCompile(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a program")
	}
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(read(t, "docs/from-scripts.md"), -1)
	assert.True(t, len(blocks) >= 8, "only so many blocks of Go:", len(blocks))
	var body strings.Builder
	body.WriteString(prelude)
	for i, block := range blocks {
		if regexp.MustCompile(`^(type|var|func) `).MatchString(block[1]) {
			body.WriteString(block[1])
			continue
		}
		fmt.Fprintf(&body, `
func block%d(ctx context.Context, client *bide.Client, consumer *bide.Consumer, midnight time.Time) (err error) {
{
%s
}
return err
}
`, i, block[1])
	}
	source := filepath.Join(t.TempDir(), "main.go")
	assert.NoError(t, os.WriteFile(source, []byte("package main\n\n"+imports(body.String())+body.String()), 0o600))
	build := exec.CommandContext(t.Context(), "go", "build", "-o", os.DevNull, source)
	build.Dir = root // its module
	out, err := build.CombinedOutput()
	assert.NoError(t, err, string(out))
}

// imports declares the packages that a text uses.
func imports(text string) string {
	known := map[string]string{
		"context": "context", "errors": "errors", "fmt": "fmt", "time": "time",
		"bide":        "github.com/bidemq/bide",
		"storage":     "github.com/bidemq/bide/storage",
		"redisstore":  "github.com/bidemq/bide/redisstore",
		"pebblestore": "github.com/bidemq/bide/pebblestore",
	}
	var used []string
	for name, path := range known {
		if regexp.MustCompile(`\b` + name + `\.[A-Z]`).MatchString(text) {
			used = append(used, fmt.Sprintf("import %q\n", path))
		}
	}
	slices.Sort(used)
	return strings.Join(used, "")
}
