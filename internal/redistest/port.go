// SPDX-License-Identifier: Apache-2.0

package redistest

import (
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// startOnPort runs a server on a free port of the loopback interface. Somebody else may take the
// port first: then another is tried. What args gets are the port of the server and the one that
// clients and other servers know.
func startOnPort(t testing.TB, options []Option, args func(port, known string) []string) *Server {
	t.Helper()
	dir := tempDir(t)
	for range 5 {
		port := freePort(t)
		s := &Server{dir: dir, network: "tcp", address: net.JoinHostPort("127.0.0.1", port)}
		s.args = []string{
			"--port", port, "--bind", "127.0.0.1", "--dir", dir,
			"--save", "", "--appendonly", "no", "--enable-debug-command", "yes", "--repl-diskless-sync-delay", "0",
			"--repl-ping-replica-period", "1", "--repl-timeout", "5", // a link that has died without a word is noticed
		}
		for _, o := range options {
			o(s)
		}
		if s.clock != "" {
			s.fake(t)
		}
		if s.proxied {
			s.through(t, "127.0.0.1:0")
		}
		_, known := s.hostPort(t)
		s.args = append(s.args, args(port, known)...)
		p, err := startProcess(dir, s.env, serverProgram(), s.args...)
		if err != nil {
			t.Fatal(err)
		}
		s.process = p
		Until(t, "redis-server answers", func() bool { return p.ended() || s.answers() })
		if !p.ended() {
			t.Cleanup(s.Kill)
			return s
		}
	}
	t.Fatal("found no free port for redis-server")
	return nil
}

// hostPort is where clients and other servers reach a server.
func (s *Server) hostPort(t testing.TB) (host, port string) {
	t.Helper()
	host, port, err := net.SplitHostPort(s.reached())
	if err != nil {
		t.Fatal(err)
	}
	return host, port
}

// freePort returns a port that nobody listens on. It is below those that systems give to outgoing
// connections, one of which might take it while a server that was killed is not back.
func freePort(t testing.TB) string {
	t.Helper()
	for range 100 {
		port := strconv.Itoa(10_000 + rand.IntN(20_000))
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", port))
		if err != nil {
			continue
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		return port
	}
	t.Fatal("found no free port")
	return ""
}
