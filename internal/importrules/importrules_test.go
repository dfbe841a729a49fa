// SPDX-License-Identifier: Apache-2.0

// Package importrules_test keeps the packages of the module apart from each other, as ARCHITECTURE
// describes it: engines know the contract and nothing of the front, and who uses one engine compiles
// no other.
package importrules_test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/bidemq/bide"

// anything stands for every package outside the standard library and the module.
const anything = "*"

// rules say what a package may depend on besides the standard library, itself and its subfolders
// under internal, directly or not. Folders of the module are written as ./folder and allow what they
// may depend on, too.
var rules = map[string][]string{
	".":                     {"./storage", "github.com/oklog/ulid/v2"},
	"./storage":             {},
	"./storage/storagetest": {"./storage", "./memstore", "./internal/assert", "github.com/google/go-cmp/cmp", "github.com/tidwall/btree"},
	"./memstore":            {"./storage", "github.com/tidwall/btree"},
	"./pebblestore":         {"./storage", anything},
	"./redisstore":          {"./storage", "./internal/redisconn", anything},
	"./remotestore":         {"./storage", "./gen", anything},
	"./server":              {"./storage", "./gen", anything},
	"./bidetest":            {".", "./storage", "./memstore", "github.com/oklog/ulid/v2", "github.com/tidwall/btree"},
}

// apart are packages that are not to be found below others, whatever their rules.
var apart = map[string][]string{
	"./pebblestore": {"github.com/redis"},
	"./redisstore":  {"github.com/cockroachdb"},
	"./remotestore": {"github.com/redis", "github.com/cockroachdb"},
	"./server":      {"github.com/redis", "github.com/cockroachdb"},
}

// vague names say nothing about what a package is for.
var vague = []string{"util", "utils", "common", "helper", "helpers", "base", "types", "models"}

type pkg struct {
	ImportPath string
	Name       string
	Standard   bool
	Deps       []string
}

func TestImportRules(t *testing.T) {
	all := load(t)
	for _, p := range all {
		if allowed, ok := rules[folder(p.ImportPath)]; ok {
			for _, dep := range p.Deps {
				if d, ok := all[dep]; ok && !d.Standard && !allows(allowed, p.ImportPath, dep) {
					t.Errorf("%s depends on %s; it may depend on the standard library and %v", p.ImportPath, dep, allowed)
				}
			}
		}
		for _, dep := range p.Deps {
			for _, no := range apart[folder(p.ImportPath)] {
				if strings.HasPrefix(dep, no+"/") {
					t.Errorf("%s depends on %s", p.ImportPath, dep)
				}
			}
		}
	}
}

func TestPackageNames(t *testing.T) {
	for _, p := range load(t) {
		inside := p.ImportPath == module || strings.HasPrefix(p.ImportPath, module+"/")
		if inside && (slices.Contains(vague, p.Name) || slices.Contains(vague, path.Base(p.ImportPath))) {
			t.Errorf("package %s has a name that says nothing", p.ImportPath)
		}
	}
}

func TestEveryRuleIsBroken(t *testing.T) { // by these, so the rules can be
	for _, c := range []struct{ from, to string }{
		{".", "./memstore"},
		{".", "github.com/google/go-cmp/cmp"},
		{"./storage", "."},
		{"./redisstore", "."},
		{"./redisstore", "./memstore"},
		{"./pebblestore", "./redisstore"},
		{"./server", "./pebblestore"},
		{"./storage/storagetest", "."},
	} {
		if allows(rules[c.from], full(c.from), full(c.to)) {
			t.Errorf("%s may depend on %s", c.from, c.to)
		}
	}
}

// allows says whether a package may have the dependency.
func allows(allowed []string, from, dep string) bool {
	inside := dep == module || strings.HasPrefix(dep, module+"/")
	if strings.HasPrefix(dep, from+"/internal/") {
		return true
	}
	for _, a := range allowed {
		if a == anything && !inside || full(a) == dep || a == "./gen" && strings.HasPrefix(dep, full(a)+"/") {
			return true
		}
		if !strings.HasPrefix(a, ".") && strings.HasPrefix(dep, a+"/") { // its own subfolders
			return true
		}
	}
	return false
}

// load lists the packages of the module, without tests, and all that they depend on.
func load(t *testing.T) map[string]pkg {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-e", "-deps", "-json=ImportPath,Name,Standard,Deps", module+"/...")
	var problems strings.Builder
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, problems.String())
	}
	all := map[string]pkg{}
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		err := dec.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("go list: %v", err)
		}
		all[p.ImportPath] = p
	}
	if _, ok := all[module+"/storage"]; !ok {
		t.Fatalf("go list found %d packages and not the contract", len(all))
	}
	return all
}

// folder is the short form of a package of the module, "" of others.
func folder(importPath string) string {
	if importPath == module {
		return "."
	}
	if rest, ok := strings.CutPrefix(importPath, module+"/"); ok {
		return "./" + rest
	}
	return ""
}

func full(name string) string {
	if name == "." {
		return module
	}
	if rest, ok := strings.CutPrefix(name, "./"); ok {
		return module + "/" + rest
	}
	return name
}
