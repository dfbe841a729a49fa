// SPDX-License-Identifier: Apache-2.0

package server

import (
	"io"
	"os"
)

// Talk with a program, over its standard input and output.
type Talk struct {
	io.Writer // its input
	io.Reader // its output, which ends with it
}

// StartClient runs a program that is part of the client side.
func (h *Host) StartClient(path string, args ...string) (*Talk, error) {
	in, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	read, out, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p, err := start(h.log(), Program{Path: path, Role: Client}, args, in, out)
	_, _ = in.Close(), out.Close() // the process has its own
	if err != nil {
		return nil, err
	}
	h.processes = append(h.processes, p)
	return &Talk{write, read}, nil
}
