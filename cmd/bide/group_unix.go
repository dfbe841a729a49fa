// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// ownGroup gives a command a process group: an interrupt of the terminal is for bide, which lets
// commands finish, and what a command leaves behind can be ended with it.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// askToEnd lets the group of a process end in order.
func askToEnd(pid int) error { return syscall.Kill(-pid, syscall.SIGTERM) }

// endGroup kills the group of a process; there may be nothing left of it.
func endGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }
