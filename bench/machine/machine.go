// SPDX-License-Identifier: Apache-2.0

// Package machine says what the figures are of: the machine, how busy it was, and which versions.
package machine

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/bidemq/bide/bench/result"
	"github.com/bidemq/bide/bench/server"
	"github.com/bidemq/bide/bench/system"
)

// modules whose versions are part of a result.
var modules = []string{
	"github.com/hibiken/asynq", "github.com/redis/go-redis/v9", "github.com/redis/rueidis", "github.com/cockroachdb/pebble/v2",
	"github.com/beanstalkd/go-beanstalk", "github.com/nats-io/nats-server/v2", "github.com/nats-io/nats.go",
	"github.com/riverqueue/river", "github.com/jackc/pgx/v5",
}

// Describe the machine, with the disk that a directory is on.
func Describe(ctx context.Context, dir string) (result.Machine, error) {
	sync, err := syncTime(dir)
	if err != nil {
		return result.Machine{}, err
	}
	m := result.Machine{
		CPU: field("/proc/cpuinfo", "model name"), Cores: runtime.NumCPU(), Kernel: strings.TrimSpace(read("/proc/sys/kernel/osrelease")),
		Go: runtime.Version(), Disk: fileSystem(dir), Sync: sync, Load: Load(), Versions: versions(ctx),
	}
	kib, _, _ := strings.Cut(field("/proc/meminfo", "MemTotal"), " ")
	if n, err := strconv.ParseInt(kib, 10, 64); err == nil {
		m.Memory = n << 10
	}
	return m, nil
}

// Load is the average over the last minute, 0 if unknown.
func Load() float64 {
	first, _, _ := strings.Cut(read("/proc/loadavg"), " ")
	load, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return 0
	}
	return load
}

// Commit of the checkout that this is run in, "" if there is none.
func Commit(ctx context.Context) string {
	head, err := exec.CommandContext(ctx, "git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return ""
	}
	commit := strings.TrimSpace(string(head))
	changes, err := exec.CommandContext(ctx, "git", "status", "--porcelain", "--untracked-files=no").Output()
	if err == nil && len(changes) > 0 {
		commit += "-dirty"
	}
	return commit
}

// syncTime is the median time to append 4 KiB to a file and wait for the disk.
func syncTime(dir string) (time.Duration, error) {
	const times = 101
	f, err := os.CreateTemp(dir, "bide-bench-sync-")
	if err != nil {
		return 0, fmt.Errorf("measure the disk: %w", err)
	}
	defer func() { _ = os.Remove(f.Name()) }()
	defer func() { _ = f.Close() }()
	block := make([]byte, 4096)
	took := make([]time.Duration, times)
	for i := range took {
		began := time.Now()
		if _, err := f.Write(block); err != nil {
			return 0, fmt.Errorf("measure the disk: %w", err)
		}
		if err := syscall.Fdatasync(int(f.Fd())); err != nil {
			return 0, fmt.Errorf("measure the disk: %w", err)
		}
		took[i] = time.Since(began)
	}
	slices.Sort(took)
	return took[times/2], nil
}

// versions of the programs and modules that are there.
func versions(ctx context.Context) map[string]string {
	all := map[string]string{}
	programs := map[string]string{"redis-server": "--version", "beanstalkd": "-v", "node": "--version"}
	if dir, err := server.FindPostgres(); err == nil {
		programs[filepath.Join(dir, "postgres")] = "--version"
	}
	for program, flag := range programs {
		out, err := exec.CommandContext(ctx, program, flag).Output()
		if err != nil {
			continue
		}
		all[filepath.Base(program)] = version(string(out))
	}
	for _, name := range []string{"bullmq", "ioredis"} {
		if v := nodeModule(name); v != "" {
			all[name] = v
		}
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return all
	}
	for _, d := range info.Deps {
		if slices.Contains(modules, d.Path) {
			all[d.Path] = d.Version
		}
	}
	return all
}

// nodeModule is the version of a module that npm has installed, "" if it has not.
func nodeModule(name string) string {
	dir, err := system.BullMQ()
	if err != nil {
		return ""
	}
	var about struct {
		Version string `json:"version"`
	}
	if json.Unmarshal([]byte(read(filepath.Join(dir, "node_modules", name, "package.json"))), &about) != nil {
		return ""
	}
	return about.Version
}

// version is the first word of a program's answer that looks like one.
func version(text string) string {
	for word := range strings.FieldsSeq(text) {
		word = strings.TrimPrefix(strings.TrimPrefix(word, "v="), "v")
		if word != "" && word[0] >= '0' && word[0] <= '9' {
			return word
		}
	}
	return strings.TrimSpace(text)
}

// fileSystem that a directory is on: the longest mount point above it.
func fileSystem(dir string) string {
	full, err := filepath.Abs(dir)
	if err != nil {
		return ""
	}
	best, kind := "", ""
	for line := range strings.Lines(read("/proc/self/mounts")) {
		f := strings.Fields(line)
		if len(f) < 3 {
			continue
		}
		inside := full == f[1] || strings.HasPrefix(full, strings.TrimSuffix(f[1], "/")+"/")
		if inside && len(f[1]) >= len(best) {
			best, kind = f[1], f[2]
		}
	}
	return kind
}

// field of a file in which every line is a name, a colon and a value.
func field(file, name string) string {
	for line := range strings.Lines(read(file)) {
		if n, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(n) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// read a file of which nothing depends on being there.
func read(file string) string {
	b, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	return string(b)
}
