// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ticks a second, in which Linux counts the time of processes on every machine that Go runs on.
const ticks = 100

// stat is what the kernel says about a process.
type stat struct {
	parent int
	cpu    time.Duration // in its own code and in the kernel for it, and of its children that have ended
}

// processCPU is the time that a process and all its descendants have spent.
func processCPU(pid int) (time.Duration, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("CPU time of a server: %w", err)
	}
	own, err := parseStat(string(b))
	if err != nil {
		return 0, err
	}
	return own.cpu + livingDescendants(pid), nil
}

// livingDescendants sums the time of the processes under one, such as the many of PostgreSQL.
func livingDescendants(pid int) time.Duration {
	names, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0
	}
	children := map[int][]int{}
	all := map[int]stat{}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil { // it has ended
			continue
		}
		s, err := parseStat(string(b))
		n, nerr := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if err == nil && nerr == nil {
			all[n] = s
			children[s.parent] = append(children[s.parent], n)
		}
	}
	var sum time.Duration
	for open := children[pid]; len(open) > 0; {
		n := open[0]
		open = append(open[1:], children[n]...)
		sum += all[n].cpu
	}
	return sum
}

// parseStat reads a stat line, whose second field is a name in parentheses that may hold anything.
func parseStat(line string) (stat, error) {
	const parent, first, last = 1, 11, 14 // counted from the field after the name; the times are side by side
	fields := strings.Fields(line[strings.LastIndexByte(line, ')')+1:])
	if len(fields) <= last {
		return stat{}, fmt.Errorf("CPU time of a server: %q has too few fields", line)
	}
	var s stat
	var err error
	if s.parent, err = strconv.Atoi(fields[parent]); err != nil {
		return stat{}, fmt.Errorf("parent of a server: %w", err)
	}
	for _, field := range fields[first : last+1] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return stat{}, fmt.Errorf("CPU time of a server: %w", err)
		}
		s.cpu += time.Duration(n) * (time.Second / ticks)
	}
	return s, nil
}

// OwnCPU is the time that this process has spent.
func OwnCPU() (time.Duration, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, fmt.Errorf("own CPU time: %w", err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}

// residentMemory of a process, in bytes.
func residentMemory(pid int) (int64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, fmt.Errorf("memory of a server: %w", err)
	}
	fields := strings.Fields(string(b))
	if len(fields) < 2 {
		return 0, fmt.Errorf("memory of a server: %q has too few fields", b)
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize()), err
}

// blocks is what the file system has set aside for a file, in bytes.
func blocks(info os.FileInfo) int64 {
	const block = 512
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return s.Blocks * block
	}
	return info.Size()
}
