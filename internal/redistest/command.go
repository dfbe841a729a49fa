// SPDX-License-Identifier: Apache-2.0

package redistest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// answerTime bounds how long a command may take.
const answerTime = 10 * time.Second

// Do runs a command and returns its answer as redis-cli prints it: what an array holds stands in
// lines.
func (s *Server) Do(t testing.TB, command ...string) string {
	t.Helper()
	out, err := s.Try(command...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Try is Do for commands that may fail.
func (s *Server) Try(command ...string) (string, error) {
	out, err := s.ask(command)
	if err != nil && strings.HasPrefix(err.Error(), "MOVED ") {
		return s.follow(command)
	}
	if err != nil {
		return "", fmt.Errorf("%s at %s: %w", strings.Join(command, " "), s.address, err)
	}
	return strings.TrimRight(out, "\n"), nil
}

// ask runs a command on a connection of its own, without its proxy.
func (s *Server) ask(command []string) (string, error) {
	c, err := net.DialTimeout(s.network, s.address, time.Second)
	if err != nil {
		return "", err
	}
	defer func() { _ = c.Close() }()
	if err := c.SetDeadline(time.Now().Add(answerTime)); err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(command))
	for _, word := range command {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(word), word)
	}
	if _, err := io.WriteString(c, b.String()); err != nil {
		return "", err
	}
	return readAnswer(bufio.NewReader(c))
}

// readAnswer reads one answer. One that is an error is returned as one, without words around it.
func readAnswer(r *bufio.Reader) (string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return "", err
	}
	kind, text := line[0], strings.TrimRight(line[1:], "\r\n")
	switch kind {
	case '+', ':':
		return text, nil
	case '-':
		return "", errors.New(text)
	}
	n, err := strconv.Atoi(text)
	if err != nil || kind != '$' && kind != '*' {
		return "", fmt.Errorf("answer %q", line)
	}
	if n < 0 {
		return "", nil
	}
	if kind == '$' {
		body := make([]byte, n+2)
		_, err := io.ReadFull(r, body)
		return string(body[:max(len(body)-2, 0)]), err
	}
	lines := make([]string, n)
	for i := range lines {
		if lines[i], err = readAnswer(r); err != nil {
			return "", err
		}
	}
	return strings.Join(lines, "\n"), nil
}

// follow runs a command where a cluster sends it.
func (s *Server) follow(command []string) (string, error) {
	host, port, err := net.SplitHostPort(s.address)
	if err != nil {
		return "", err
	}
	out, err := exec.Command("redis-cli", append([]string{"-c", "-h", host, "-p", port, "-e"}, command...)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("redis-cli %s: %w: %s", strings.Join(command, " "), err, out)
	}
	return strings.TrimRight(string(out), "\n"), nil
}
