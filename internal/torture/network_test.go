// SPDX-License-Identifier: Apache-2.0

package torture

import (
	"time"

	"github.com/bidemq/bide/internal/proxy"
	"github.com/bidemq/bide/internal/redistest"
)

// ofNetwork are the faults that happen between the processes and a server.
func (r *ring) ofNetwork(p *proxy.Proxy) []fault {
	direction := proxy.Direction(r.rnd.IntN(2))
	bytes := int64(r.rnd.IntN(5000))
	return []fault{
		{"connections cut at a byte", func() { p.Cut(direction, bytes) }},
		{"connections half-open from a byte on", func() { p.Swallow(direction, bytes) }},
		{"network slow", func() {
			p.Delay(direction, r.upTo(5, 100))
			r.wait(r.upTo(200, 1000))
			p.Delay(direction, 0)
		}},
		{"network held up", func() {
			p.Hold()
			r.wait(r.upTo(100, 3000))
			p.Release()
		}},
	}
}

// ofServer are the faults that a server has by itself, and is alive after.
func (r *ring) ofServer(s *redistest.Server) []fault {
	return []fault{
		{"scripts flushed", func() { s.Do(r, "SCRIPT", "FLUSH") }},
		{"connections cut", func() { s.Do(r, "CLIENT", "KILL", "TYPE", "normal") }},
		{"notices cut", func() { s.Do(r, "CLIENT", "KILL", "TYPE", "pubsub") }},
		{"clients paused", func() { s.Do(r, "CLIENT", "PAUSE", "300") }},
		{"server asleep", func() { s.Do(r, "DEBUG", "SLEEP", "0.8") }},
		{"idle connections cut", func() {
			s.Do(r, "CONFIG", "SET", "timeout", "1")
			r.wait(2500 * time.Millisecond)
			s.Do(r, "CONFIG", "SET", "timeout", "0")
		}},
		{"server full", func() {
			s.Do(r, "CONFIG", "SET", "maxmemory", "1mb")
			r.wait(200 * time.Millisecond)
			s.Do(r, "CONFIG", "SET", "maxmemory", "0")
		}},
	}
}
