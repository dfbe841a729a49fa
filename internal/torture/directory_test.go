// SPDX-License-Identifier: Apache-2.0

package torture

import (
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/bidemq/bide/internal/assert"
)

// directory is an embedded engine, which one process at a time can have.
type directory struct{ path string }

func startDirectory(t *testing.T, _ *rand.Rand) place {
	t.Helper()
	return &directory{filepath.Join(t.TempDir(), "store")}
}

func (p *directory) name() string { return "directory" }
func (p *directory) url() string  { return inDirectory + p.path }
func (p *directory) crowd() int   { return 1 }
func (p *directory) mend(*ring)   {}

func (p *directory) faults(r *ring) []fault {
	return []fault{{"disk full", func() { p.full(r) }}}
}

// full lets no file grow beyond what the log has, as a full disk would, and then there is room
// again for another process.
func (p *directory) full(r *ring) {
	r.Helper()
	victim := r.living[0]
	limit := func(bytes string) {
		out, err := exec.Command("prlimit", "--pid", strconv.Itoa(victim.Process.Pid), "--fsize="+bytes).CombinedOutput()
		assert.NoError(r, err, string(out))
	}
	limit(strconv.Itoa(r.rnd.IntN(64 << 10)))
	r.wait(r.upTo(100, 500))
	r.kill(victim)
	r.start()
}
