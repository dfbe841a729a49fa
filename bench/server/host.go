// SPDX-License-Identifier: Apache-2.0

// Package server runs the servers of the systems that are measured, each on a free port of the
// loopback device and in a directory of its own, and says what they use.
package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// Host owns the servers of one run. It is used by one goroutine.
type Host struct {
	dir       string
	processes []*process
	redis     *redis // nil if there is none
	shared    bool   // the servers share their memory
}

// NewHost returns a host that keeps everything in a directory, which stays the caller's to remove.
func NewHost(dir string) (*Host, error) {
	h := &Host{dir: dir}
	return h, os.MkdirAll(h.Data(), 0o755)
}

// Data is the directory that servers and embedded engines keep their data in.
func (h *Host) Data() string { return filepath.Join(h.dir, "data") }

// attempts to find a port that nobody else takes meanwhile.
const attempts = 5

// Start runs a server with the arguments that are made for a port, and returns the address once it
// accepts connections there.
func (h *Host) Start(ctx context.Context, path string, args func(port string) []string) (string, error) {
	return h.StartProgram(ctx, Program{Path: path}, args)
}

// StartProgram is Start for a program that is not just a server.
func (h *Host) StartProgram(ctx context.Context, program Program, args func(port string) []string) (string, error) {
	var err error
	for range attempts {
		var port int
		if port, err = freePort(ctx); err != nil {
			return "", err
		}
		var p *process
		if p, err = start(h.log(), program, args(strconv.Itoa(port)), nil, nil); err != nil {
			return "", err
		}
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		if err = p.accepts(ctx, address); err == nil {
			h.processes = append(h.processes, p)
			return address, nil
		}
		p.end()
	}
	return "", err
}

// log is the file that the output of all programs goes to.
func (h *Host) log() string { return filepath.Join(h.dir, "output") }

// Close ends all programs, those last that were started first.
func (h *Host) Close() {
	if h.redis != nil {
		h.redis.client.Close()
	}
	for _, p := range slices.Backward(h.processes) {
		p.end()
	}
}

// CPU time that all programs of a role have used.
func (h *Host) CPU(role Role) (time.Duration, error) {
	var sum time.Duration
	for _, p := range h.processes {
		if p.Role != role {
			continue
		}
		d, err := processCPU(p.pid())
		if err != nil {
			return 0, err
		}
		sum += d
	}
	return sum, nil
}

// Memory in bytes: what Redis says it uses, else what is resident of all servers. It is 0 without a
// server, and where processes share theirs so that it cannot be told.
func (h *Host) Memory(ctx context.Context) (int64, error) {
	if h.redis != nil {
		info, err := h.Redis(ctx)
		return info.UsedMemory, err
	}
	var sum int64
	for _, p := range h.processes {
		if p.Role != Server || h.shared {
			continue
		}
		n, err := residentMemory(p.pid())
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

// Disk is how many bytes the files of the data have, and how many the file system has set aside for
// them, which is more where files are laid out ahead.
func (h *Host) Disk() (length, allocated int64, err error) {
	err = filepath.Walk(h.Data(), func(_ string, info os.FileInfo, err error) error {
		if errors.Is(err, os.ErrNotExist) { // an engine may remove a file at any time
			return nil
		}
		if err == nil && info.Mode().IsRegular() {
			length += info.Size()
			allocated += blocks(info)
		}
		return err
	})
	if err != nil {
		return 0, 0, fmt.Errorf("size of the data: %w", err)
	}
	return length, allocated, nil
}

func freePort(ctx context.Context) (int, error) {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer func() { _ = l.Close() }()
	address, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return 0, errors.New("find a free port: no TCP address")
	}
	return address.Port, nil
}
