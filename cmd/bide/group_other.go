// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package main

import (
	"os"
	"os/exec"
)

// Elsewhere there are no process groups: a command is ended alone.

func ownGroup(*exec.Cmd) {}

func askToEnd(pid int) error {
	p, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	return p.Kill()
}

func endGroup(pid int) { _ = askToEnd(pid) }
