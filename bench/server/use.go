// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ticks a second, in which Linux counts the time of processes on every machine that Go runs on.
const ticks = 100

// processCPU is the time that a process has spent, in its own code and in the kernel for it.
func processCPU(pid int) (time.Duration, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("CPU time of a server: %w", err)
	}
	return parseStat(string(b))
}

// parseStat reads the times from a stat line, whose second field is a name in parentheses that may
// hold anything.
func parseStat(stat string) (time.Duration, error) {
	const user, system = 11, 12 // counted from the field after the name
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) <= system {
		return 0, fmt.Errorf("CPU time of a server: %q has too few fields", stat)
	}
	u, err := strconv.ParseInt(fields[user], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("CPU time of a server: %w", err)
	}
	s, err := strconv.ParseInt(fields[system], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("CPU time of a server: %w", err)
	}
	return time.Duration(u+s) * (time.Second / ticks), nil
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
