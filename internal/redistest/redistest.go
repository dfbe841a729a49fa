// SPDX-License-Identifier: Apache-2.0

// Package redistest runs real Redis servers for tests: single ones on a Unix socket, Clusters and
// primaries with Sentinel on free ports. They end with their test, and with the test binary.
package redistest

import (
	"bufio"
	"cmp"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/bidemq/bide/internal/proxy"
)

// patience bounds a failure to start.
const patience = 20 * time.Second

// Option changes how a server is started.
type Option func(*Server)

// AppendOnly makes the server keep a log, synced as fsync says: always, everysec or no.
func AppendOnly(fsync string) Option {
	return Config("appendonly", "yes", "appendfsync", fsync)
}

// Config sets configuration directives, given as names and values.
func Config(namesAndValues ...string) Option {
	return func(s *Server) {
		for i := 0; i+1 < len(namesAndValues); i += 2 {
			s.args = append(s.args, "--"+namesAndValues[i], namesAndValues[i+1])
		}
	}
}

// Server is a running redis-server.
type Server struct {
	dir     string
	network string // unix or tcp
	address string // of the socket
	args    []string
	env     []string // beside that of the test
	clock   string   // file that says how far the clock is off, "" if it cannot be turned
	proxied bool
	process *process

	Proxy *proxy.Proxy // that clients reach it through, nil if they come straight
}

// Start runs a server of the test's own, without persistence unless an option asks for it. The test
// is skipped in short mode or if there is no redis-server on the path, or fails where one is required
// (CI=true or BIDE_REQUIRE_REDIS=1).
func Start(t testing.TB, options ...Option) *Server {
	t.Helper()
	s := newServer(t, tempDir(t))
	for _, o := range options {
		o(s)
	}
	if s.clock != "" {
		s.fake(t)
	}
	s.start(t)
	t.Cleanup(s.Kill)
	if s.proxied {
		s.through(t, filepath.Join(s.dir, "proxy.sock"))
	}
	return s
}

// newServer is a server on a socket in a directory, not started yet.
func newServer(t testing.TB, dir string) *Server {
	t.Helper()
	require(t)
	return &Server{dir: dir, network: "unix", address: filepath.Join(dir, "redis.sock"), args: []string{
		"--port", "0", "--unixsocket", filepath.Join(dir, "redis.sock"),
		"--dir", dir, "--save", "", "--appendonly", "no", "--enable-debug-command", "yes",
	}}
}

// shared is the server that the tests of a binary have in common. It runs while one of them does.
var shared struct {
	sync.Mutex
	server *Server
	users  int
}

// Shared returns a server that other tests use at the same time: use names of your own, and change
// nothing else.
func Shared(t testing.TB) *Server {
	t.Helper()
	require(t)
	shared.Lock()
	defer shared.Unlock()
	if shared.users == 0 {
		dir, err := shortDir()
		if err != nil {
			t.Fatal(err)
		}
		shared.server = newServer(t, dir)
		shared.server.start(t)
	}
	shared.users++
	t.Cleanup(func() {
		shared.Lock()
		defer shared.Unlock()
		if shared.users--; shared.users == 0 {
			shared.server.Kill()
			_ = os.RemoveAll(shared.server.dir)
		}
	})
	return shared.server
}

// require skips or fails a test that cannot have a server.
func require(t testing.TB) {
	t.Helper()
	if testing.Short() && !required() {
		t.Skip("short tests need no server")
	}
	for _, program := range []string{serverProgram(), "redis-cli"} {
		if _, err := exec.LookPath(program); err == nil {
			continue
		}
		if required() {
			t.Fatalf("%s is not on the path: install it, on Debian with apt-get install redis", program)
		}
		t.Skipf("%s is not on the path", program)
	}
}

// required says that tests fail for want of a server, and are not skipped.
func required() bool { return os.Getenv("CI") == "true" || os.Getenv("BIDE_REQUIRE_REDIS") == "1" }

// shortDir makes a directory whose name is short enough for a socket.
func shortDir() (string, error) { return os.MkdirTemp("", "redistest") }

// tempDir is such a directory, removed with the test.
func tempDir(t testing.TB) string {
	t.Helper()
	dir, err := shortDir()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func (s *Server) start(t testing.TB) {
	t.Helper()
	p, err := startProcess(s.dir, s.env, serverProgram(), s.args...)
	if err != nil {
		t.Fatal(err)
	}
	s.process = p
	Until(t, "redis-server answers", func() bool { return s.process.ended() || s.answers() })
	if p.ended() {
		t.Fatalf("redis-server did not start:\n%s", p.output())
	}
}

// answers reports whether the server is up and has loaded its data.
func (s *Server) answers() bool {
	c, err := net.DialTimeout(s.network, s.address, time.Second)
	if err != nil {
		return false
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(time.Second))
	if _, err := c.Write([]byte("PING\r\n")); err != nil {
		return false
	}
	line, err := bufio.NewReader(c).ReadString('\n')
	return err == nil && strings.HasPrefix(line, "+PONG")
}

// serverProgram is the server that is tested. Another one than that of the path is named by
// BIDE_REDIS_SERVER, to run the tests on other versions and relatives of Redis.
func serverProgram() string { return cmp.Or(os.Getenv("BIDE_REDIS_SERVER"), "redis-server") }

// Proxied puts a proxy before the server: URL leads through it, and so does what the servers of a
// set say to each other. Do does not.
func Proxied() Option { return func(s *Server) { s.proxied = true } }

// through starts the proxy of a server.
func (s *Server) through(t testing.TB, address string) {
	t.Helper()
	p, err := proxy.Start(s.network, address, s.network, s.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	s.Proxy = p
}

// URL is the server as redisstore.Open takes it.
func (s *Server) URL() string { return s.url(s.reached()) }

// StraightURL is the server without its proxy.
func (s *Server) StraightURL() string { return s.url(s.address) }

func (s *Server) url(address string) string {
	if s.network == "unix" {
		return "redis+unix://" + address
	}
	return "redis://" + address
}

// reached is the address that clients and other servers know.
func (s *Server) reached() string {
	if s.Proxy != nil {
		return s.Proxy.Address()
	}
	return s.address
}

// Address is the path of the socket, or host and port.
func (s *Server) Address() string { return s.address }

// Dir is where the server keeps its files.
func (s *Server) Dir() string { return s.dir }

// PID is that of the process.
func (s *Server) PID() int { return s.process.command.Process.Pid }

// Up says whether the process runs, and answers.
func (s *Server) Up() bool { return !s.process.ended() && s.answers() }

// Stop makes the server stand still, with its connections open, until Continue.
func (s *Server) Stop(t testing.TB) { s.signal(t, syscall.SIGSTOP) }

// Continue ends Stop.
func (s *Server) Continue(t testing.TB) { s.signal(t, syscall.SIGCONT) }

func (s *Server) signal(t testing.TB, sig syscall.Signal) {
	t.Helper()
	if err := s.process.command.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

// Kill ends the server at once, as a crash would. A second Kill does nothing.
func (s *Server) Kill() { s.process.kill() }

// Restart starts a killed server on what it left in its directory, with further options.
func (s *Server) Restart(t testing.TB, options ...Option) {
	t.Helper()
	for _, o := range options {
		o(s)
	}
	s.start(t)
}

// Until waits for a condition, and fails if it does not come true.
func Until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	until(t, patience, what, ok)
}

func until(t testing.TB, long time.Duration, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(long); !ok(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("waited %s in vain: %s", long, what)
		}
	}
}
