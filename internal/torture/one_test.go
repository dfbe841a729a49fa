// SPDX-License-Identifier: Apache-2.0

package torture

import (
	"bytes"
	"cmp"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/internal/redistest"
)

// one is a single Redis with a log.
type one struct {
	server *redistest.Server
	fsync  string
}

func startOne(t *testing.T, rnd *rand.Rand) place {
	t.Helper()
	p := &one{fsync: []string{"always", "everysec"}[rnd.IntN(2)]}
	p.server = redistest.Start(t, redistest.Proxied(), redistest.AppendOnly(p.fsync))
	return p
}

func (p *one) name() string { return "one-" + p.fsync }
func (p *one) url() string  { return p.server.URL() }
func (p *one) crowd() int   { return 4 }
func (p *one) mend(*ring)   {}

func (p *one) faults(r *ring) []fault {
	all := append(r.ofServer(p.server), r.ofNetwork(p.server.Proxy)...)
	all = append(all, fault{"server killed", func() {
		if p.fsync != "always" {
			defer r.mayLose(late)()
		}
		p.server.Kill()
		r.wait(r.upTo(0, 300))
		p.server.Restart(r)
	}})
	if p.fsync != "always" {
		all = append(all, fault{"power lost", func() { p.powerLost(r) }})
	}
	return all
}

// late is how long Redis lets the log wait for a disk that syncs, where it syncs every second.
const late = 2500 * time.Millisecond

// powerLost kills the server and takes the end of its log away, behind any transaction of the last
// second. Not at any byte: Redis 7.0 leaves the beginning of a transaction that was cut in its log, and
// makes it part of the next one when it loads the log again.
func (p *one) powerLost(r *ring) {
	r.Helper()
	until := r.mayLose(late)
	before, first := p.log(r)
	r.wait(r.upTo(100, 900))
	p.server.Kill()
	after, name := p.log(r)
	if name != first { // a rewrite has begun since, and with it a new file
		before = 0
	}
	log, err := os.ReadFile(name)
	assert.NoError(r, err)
	end := []byte("*1\r\n$4\r\nEXEC\r\n")
	if at := bytes.LastIndex(log[:before+r.rnd.Int64N(after-before+1)], end); at >= 0 {
		assert.NoError(r, os.Truncate(name, int64(at+len(end))))
	}
	until()
	p.server.Restart(r)
}

// log is the file that the server appends to, and its size. While the log is rewritten there is an older one, too.
func (p *one) log(r *ring) (int64, string) {
	r.Helper()
	names, err := filepath.Glob(filepath.Join(p.server.Dir(), "appendonlydir", "*.incr.aof"))
	assert.NoError(r, err)
	assert.True(r, len(names) > 0, "no log")
	name := slices.MaxFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	info, err := os.Stat(name)
	assert.NoError(r, err)
	return info.Size(), name
}
