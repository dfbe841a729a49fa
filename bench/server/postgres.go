// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
)

// FindPostgres returns the directory with the programs of PostgreSQL: Debian's newest, which are not on
// the path, or those that are.
func FindPostgres() (string, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err == nil && len(found) > 0 {
		return filepath.Dir(slices.Max(found)), nil
	}
	initdb, err := exec.LookPath("initdb")
	if err != nil {
		return "", errors.New("PostgreSQL is not installed (Debian: postgresql)")
	}
	return filepath.Dir(initdb), nil
}

// StartPostgres runs a PostgreSQL with some settings, whose user postgres needs no password, and
// returns its address. Its log of changes lies beside the data, so that Disk is what the tables take.
func (h *Host) StartPostgres(ctx context.Context, settings ...string) (string, error) {
	programs, err := FindPostgres()
	if err != nil {
		return "", err
	}
	owner, err := h.unprivileged()
	if err != nil {
		return "", err
	}
	initdb := exec.CommandContext(ctx, filepath.Join(programs, "initdb"), "--pgdata", h.Data(), "--waldir", filepath.Join(h.dir, "wal"),
		"--username", "postgres", "--auth", "trust", "--encoding", "UTF8", "--locale", "C", "--no-sync")
	initdb.SysProcAttr = &syscall.SysProcAttr{Credential: owner, Pdeathsig: syscall.SIGKILL}
	if out, err := initdb.CombinedOutput(); err != nil {
		return "", fmt.Errorf("initdb: %w: %s", err, out)
	}
	h.shared = true
	postgres := Program{Path: filepath.Join(programs, "postgres"), User: owner, Stop: syscall.SIGQUIT} // which is at once
	return h.StartProgram(ctx, postgres, func(port string) []string {
		args := []string{"-D", h.Data(), "-p", port, "-h", "127.0.0.1", "-k", ""}
		for _, s := range settings {
			args = append(args, "-c", s)
		}
		return args
	})
}

// unprivileged gives the directory to somebody who is not root, as whom alone PostgreSQL runs. It is
// nil if the harness is not root either.
func (h *Host) unprivileged() (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		if u, err = user.Lookup("nobody"); err != nil {
			return nil, err
		}
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("user %s: %w", u.Username, err)
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("user %s: %w", u.Username, err)
	}
	for _, dir := range []string{h.dir, h.Data()} {
		if err := os.Chown(dir, int(uid), int(gid)); err != nil {
			return nil, err
		}
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}
